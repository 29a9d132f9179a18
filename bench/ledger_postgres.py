"""ledger_postgres.py - PostgreSQL as the rival of `./dev bench ledger`: a cluster of its own in a
directory below the current one, on a Unix socket, ended by its process id."""
import glob
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Everything else as initdb leaves it: fsync, synchronous_commit and full_page_writes are on.
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "8GB", "listen_addresses": "''",
            "fsync": "on", "synchronous_commit": "on"}
START_S = 60


def find_programs():
    """The newest installation, or None."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/pgbench"))
    return os.path.dirname(found[-1]) if found else None


class Postgres:
    """A running cluster with the schema of postgres.sql."""

    def __init__(self, accounts):
        self.bin = find_programs()
        self.accounts = accounts
        self.home = tempfile.mkdtemp(prefix="bench-postgres-", dir=".")
        self.home = os.path.abspath(self.home)
        self.process = None
        self.as_user = []
        if os.getuid() == 0:  # it refuses to run as root
            user = pwd.getpwnam("postgres")
            os.chown(self.home, user.pw_uid, user.pw_gid)
            self.as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        try:
            self.start()
        except BaseException:
            self.stop()
            raise

    def run(self, program, *arguments, **more):
        done = subprocess.run([*self.as_user, os.path.join(self.bin, program), *arguments],
                              cwd=self.home, capture_output=True, text=True, check=False, **more)
        if done.returncode != 0:
            raise RuntimeError(f"{program}: {done.stderr.strip()}")
        return done.stdout

    def start(self):
        data = os.path.join(self.home, "data")
        self.run("initdb", "-D", data, "-A", "trust", "-U", "bench", "--no-sync")
        options = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        options = [word.replace("''", "") for word in options]
        with open(os.path.join(self.home, "log"), "wb") as log:
            self.process = subprocess.Popen(
                [*self.as_user, os.path.join(self.bin, "postgres"), "-D", data, "-k", self.home,
                 *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.home)
        end = time.monotonic() + START_S
        while True:
            try:
                self.run("pg_isready", "-h", self.home, "-U", "bench", "-d", "postgres")
                break
            except RuntimeError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise
                time.sleep(0.1)
        with open(os.path.join(HERE, "postgres.sql"), encoding="utf-8") as file:
            self.sql(file.read(), accounts=str(self.accounts))
        self.sql("VACUUM ANALYZE")
        self.sql("CHECKPOINT")

    def sql(self, text, **variables):
        more = [word for name, value in variables.items() for word in ("-v", f"{name}={value}")]
        return self.run("psql", "-h", self.home, "-U", "bench", "-d", "postgres", "-X", "-q", "-At",
                        "-v", "ON_ERROR_STOP=1", *more, "-f", "-", input=text).strip()

    def settings(self):
        names = ", ".join(f"'{name}'" for name in ("server_version", "fsync", "synchronous_commit",
                                                   "full_page_writes", "shared_buffers",
                                                   "max_wal_size", "wal_sync_method"))
        return self.sql("SELECT string_agg(name || ' ' || setting, ', ' ORDER BY name) "
                        f"FROM pg_settings WHERE name IN ({names})")

    def bench(self, script, clients, seconds):
        """Transactions a second of the prepared script, and their mean latency in us."""
        path = os.path.join(self.home, "script.sql")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        os.chmod(path, 0o644)
        text = self.run("pgbench", "-h", self.home, "-U", "bench", "-n", "-M", "prepared",
                        "-c", str(clients), "-j", "2", "-T", str(max(1, round(seconds))),
                        "-f", path, "postgres")
        failed = re.search(r"number of failed transactions: (\d+)", text)
        if failed and int(failed[1]) > 0:
            raise RuntimeError(f"pgbench: {text}")
        return (float(re.search(r"tps = ([0-9.]+)", text)[1]),
                float(re.search(r"latency average = ([0-9.]+) ms", text)[1]) * 1000)

    def single(self, seconds, clients=64):
        return self.bench(f"\\set a random(1, {self.accounts})\n"
                          f"\\set b 1 + (:a + random(0, {self.accounts - 2})) % {self.accounts}\n"
                          "SELECT transfer(gen_random_uuid(), :a, :b, 1);\n", clients, seconds)

    def batch(self, seconds, count=8000, clients=4):
        rate, latency = self.bench(f"SELECT transfer_batch({count}, {self.accounts});\n", clients,
                                   seconds)
        return rate * count, latency

    def check(self):
        """What was issued is what is there; as many entries."""
        total = int(self.sql("SELECT sum(balance) FROM account"))
        if total != self.accounts << 30:
            raise RuntimeError(f"PostgreSQL: balances sum to {total}")
        return int(self.sql("SELECT count(*) FROM entry"))

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()  # setpriv became postgres: this is its process id
            try:
                self.process.wait(START_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)
