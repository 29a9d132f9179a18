"""driver.py - talks to macaroon_driver; the words of its protocol are in macaroon_driver.c."""
import subprocess


def words(*values):
    return " ".join(value.hex() or "-" for value in values)


def unhex(word):
    return b"" if word == "-" else bytes.fromhex(word)


def ask(program, requests, timeout_s=60):
    """Send all requests, return all answers: (True, words) or (False, message)."""
    done = subprocess.run([program], input="\n".join(requests) + "\n", capture_output=True,
                          text=True, timeout=timeout_s, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the driver ended with {done.returncode}: {done.stderr[-500:]}")
    lines = done.stdout.splitlines()
    if len(lines) != len(requests):
        raise RuntimeError(f"{len(lines)} answers to {len(requests)} requests")
    answers = []
    for line in lines:
        verdict, _, rest = line.partition(" ")
        assert verdict in ("ok", "no"), line
        answers.append((verdict == "ok", rest.split(" ") if verdict == "ok" else rest))
    return answers


def mint(key, location, identifier, *caveats):
    return f"mint {words(key, location, identifier, *caveats)}"


def attenuate(token, *caveats):
    return f"attenuate {token} {words(*caveats)}"


def verify(key, token):
    return f"verify {words(key, token.encode())}"


def grant(key, token):
    return f"grant {words(key, token.encode())}"
