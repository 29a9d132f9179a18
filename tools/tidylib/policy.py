"""policy.py - what tools/tidy enforces, as tables.

Paths are relative to the project and matched by prefix: "src/rt/" is a folder, "src/base/mem.c" a
file, "src/base/sign" every file that starts so. An exception belongs here with its reason; there is
no way to switch a rule off inside a source file, except the marker for long files.
"""
import re

# --- Who may include whom ------------------------------------------------------------------------
# (prefix of the including file, prefixes of what it may include in quotes). The first row that fits
# decides; {role} is the folder's name. Files outside src/ and include/ may include anything.
ROLE = r"src/(?P<role>ledger|wallet|accounting|rewarder|registry)/"
INCLUDES = [
    (r"include/ron/", ["ron/"]),
    (r"src/base/", ["base/", "ron/"]),
    (r"src/verify/", ["verify/", "base/", "ron/"]),
    (r"src/rt/", ["rt/", "base/", "ron/"]),
    (r"src/io/", ["io/", "rt/", "base/", "ron/"]),
    (r"src/auth/", ["auth/", "io/", "rt/", "base/", "ron/"]),
    # A core is pure: no runtime, no I/O, not even its own service.
    (ROLE + r"core", ["base/", "ron/error.h", "{role}/core"]),
    (ROLE, ["{role}/", "auth/", "io/", "rt/", "base/", "ron/", "ledger/port.h", "wallet/port.h",
            "accounting/port.h", "rewarder/port.h", "registry/port.h"]),
    # `ron token` works on tokens and keyrings themselves, without a process that serves.
    (r"src/cli/token", ["cli/", "auth/", "rt/clock.h", "base/", "ron/"]),
    # `ron ledger` asks a server as any client does, and reads a ledger's files without one.
    (r"src/cli/ledger", ["cli/", "io/", "ledger/", "rt/", "base/", "ron/"]),
    # A command prints what it is handed; rt/registry.h is the rows of `ron topology`.
    # `ron log` looks at files without a process around them.
    (r"src/cli/", ["cli/", "app/", "io/client", "io/log_check.h", "rt/registry.h", "base/",
                   "ron/"]),
    (r"src/app/", [""]),
    (r"src/", []),  # a folder that is not in this table includes nothing
]
# The two back ends meet at the shim; nothing above it may name one.
BACK_ENDS = ("rt/sim/", "rt/thread/")
BACK_END_USERS = ("src/rt/", "src/app/")

# --- Headers in angle brackets -------------------------------------------------------------------
LIBC = re.compile(
    r"(sys|linux|netinet|arpa|net)/\w+\.h|(assert|ctype|dirent|endian|errno|execinfo|fcntl|fenv|"
    r"fnmatch|getopt|grp|inttypes|iso646|libgen|limits|locale|netdb|pwd|regex|sched|signal|"
    r"spawn|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|"
    r"strings|syslog|termios|time|ucontext|uchar|unistd|wchar|emmintrin|immintrin|nmmintrin|"
    r"x86intrin|arm_neon|cpuid)\.h")
# Every other header: (pattern, files under src/ and include/ that may include it, reason).
HEADERS = [
    (r"sodium\.h", ["src/base/secret.c", "src/base/ed25519.c", "src/base/json_names.c"],
     "libsodium is wrapped in base/secret and base/ed25519; base/json_names takes its SipHash"),
    (r"openssl/\w+\.h", ["src/base/sha256.c", "src/io/tls"],
     "OpenSSL is wrapped in base/sha256 and io/tls"),
    (r"blake3\.h", ["src/base/b3."], "BLAKE3 is wrapped in base/b3; a hasher embeds its state"),
    (r"sanitizer/\w+\.h", ["src/base/arena.c", "src/rt/"], "sanitizer hooks are named once"),
    (r"(pthread|semaphore|threads)\.h", ["src/rt/"], "threads belong to rt"),
    (r"(poll|sys/epoll|sys/select|sys/socket)\.h", ["src/rt/", "src/io/"], "waiting belongs to io"),
    (r"setjmp\.h", ["src/rt/"], "jumps belong to rt"),
    (r"(zlib|zstd|zstd_errors)\.h", ["src/io/"], "inflating belongs to io"),
    (r"curl/\w+\.h|libpq-fe\.h", ["src/io/"], "outside services are reached through io"),
]

# --- Patterns banned in C code (comments and strings removed) ------------------------------------
def words(names):
    """The identifier anywhere, but not as a member."""
    return r"(?<![\w.])(?<!->)(?:" + "|".join(names.split()) + r")\b"


def calls(names):
    """The identifier called: for names that are also good names of variables and members."""
    return words(names) + r"\s*\("


IF = r"^[ \t]*#[ \t]*(?:el)?if\w*\b.*\b"
SHIPPED = ("src/", "include/")
EVERYWHERE = ("",)
# rule, pattern, where, except where, what to do instead
BANS = [
    ("unsafe-call", words("strcpy strcat strncpy strncat stpcpy sprintf vsprintf gets strtok "
                          "strtok_r alloca tmpnam mktemp"),
     EVERYWHERE, (), "has no bound: use base/bytes.h or snprintf"),
    ("number-text", words("atoi atol atoll atof strto(?:d|f|ld|l|ll|ul|ull|imax|umax)"),
     EVERYWHERE, ("bench/",), "accepts too much: use base/decimal.h"),
    ("scan", words("v?scanf v?sscanf v?fscanf"),
     SHIPPED, (), "accepts too much and overflows in silence: read it byte by byte"),
    ("calendar", words("gmtime gmtime_r localtime localtime_r mktime timegm asctime asctime_r "
                       "ctime ctime_r strftime strptime"),
     EVERYWHERE, (), "is not ours, or not thread-safe: calendar text has one place in base"),
    ("random", calls("rand random srand srandom drand48 lrand48 mrand48 rand_r") + "|" +
     words(r"arc4random\w*"),
     EVERYWHERE, (), "is not replayable: take randomness from rt, in tests from a seed"),
    ("environment", words("setenv putenv unsetenv popen clearenv") + "|" + calls("system"),
     EVERYWHERE, (), "changes or starts what no test sees"),
    ("getenv", words("getenv secure_getenv environ"),
     SHIPPED, ("src/app/",
               "src/cli/ledger_session.c"),  # where the server is: RON_URL, RON_TOKEN_FILE
     "is read once: by the configuration in app"),
    # Not __attribute__((malloc)), a promise about a function's result.
    ("memory", r"(?!malloc\)\))" + words(
        "malloc calloc realloc reallocarray strdup strndup asprintf vasprintf aligned_alloc "
        "posix_memalign") + "|" + calls("free"),
     SHIPPED, ("src/base/mem.c",), "has no failure hook: use base/mem.h"),
    ("cancel", words("pthread_cancel pthread_kill"),
     EVERYWHERE, (), "leaves locks and memory behind: use the cancel flag"),
    ("thread", words(r"pthread_\w+ sem_(?:wait|post|init|timedwait)") + "|" +
     calls("fork vfork clone"),
     SHIPPED, ("src/rt/", "src/io/"), "belongs to rt: the simulator must see it"),
    # Unambiguous names are banned as words: a function pointer or (fsync)(fd) is a call, too.
    ("blocking", words(
        "usleep nanosleep clock_nanosleep ppoll pselect epoll_wait epoll_pwait fsync fdatasync "
        "syncfs msync sync_file_range pread pwrite readv writev preadv pwritev recvfrom recvmsg "
        "recvmmsg sendto sendmsg sendmmsg sendfile splice accept4 flock waitpid wait4 getaddrinfo "
        "sched_yield syscall") + "|" + calls(
        "sleep poll select sync read write recv send accept connect pause wait"),
     SHIPPED, ("src/rt/", "src/io/",
               "src/base/assert.c"),  # writes a failed assertion to stderr, then aborts
     "blocks: go through rt or io"),
    ("files", words(
        "fopen freopen fdopen openat openat2 creat unlinkat linkat symlinkat renameat "
        "renameat2 mkdir mkdirat rmdir opendir fdopendir ftruncate fallocate posix_fallocate mmap "
        "fread fgets fgetc fclose getline fchmod fchown") + "|" + calls(
        "open close rename truncate unlink"),
     SHIPPED, ("src/io/vfs_posix.c",
               "src/io/path_file.c",  # reads what a person names
               "src/io/client_load.c", "src/io/client_socket.c",  # close sockets
               "src/io/conn.c", "src/io/loop.c", "src/io/server.c",
               "src/io/sd_notify.c",
               "src/rt/sim/",  # maps its arena and stacks
               "src/base/mem.c",  # maps tables; no file
               "src/cli/input.c"),  # reads standard input of a command; opens nothing
     "reaches files past io/vfs: only src/io/vfs_posix.c may"),
    # Elsewhere they are "blocking"; io waits for sockets, but not for files.
    ("file-bytes", words("fsync fdatasync syncfs msync sync_file_range pread pwrite preadv pwritev "
                         "preadv2 pwritev2 flock"),
     ("src/io/",), ("src/io/vfs_posix.c",),
     "reads, writes or syncs a file past io/vfs: only src/io/vfs_posix.c may"),
    ("clock", words(
        "clock_gettime clock_getres timespec_get gettimeofday getrandom getentropy") + "|" + calls(
        "time clock times ftime"),
     SHIPPED, ("src/rt/",), "is not replayable: time and randomness come from rt"),
    ("jump", words("_?longjmp _?setjmp siglongjmp sigsetjmp"),
     SHIPPED, ("src/rt/",), "skips cleanups: only rt unwinds"),
    ("signal", calls("signal sigaction raise kill sigprocmask"),
     SHIPPED, ("src/rt/", "src/app/"), "is set up in one place: app"),
    ("thread-local", words("_Thread_local __thread thread_local"),
     SHIPPED, ("src/rt/thread",), "is shared by all fibers of the simulator"),
    ("stdout", calls("printf vprintf fprintf vfprintf dprintf vdprintf puts fputs putchar putc "
                     "fputc fwrite perror"),
     SHIPPED, ("src/cli/", "src/base/assert.c",
               "src/rt/sim/run.c"),  # the simulator's own bug: nobody is left to answer to
     "is for the command line: answer an error or log"),
    ("lock-analysis", words("no_thread_safety_analysis"),
     EVERYWHERE, ("src/rt/lock_classes.h",), "blinds the analysis: only the lock wrappers may"),
    ("expose", calls("ron_secret_expose"),
     SHIPPED, ("src/base/secret.c", "src/base/secret.h",
               "src/auth/macaroon.c",  # a root key starts a chain of MACs
               "src/auth/cache.c",  # hashes texts of tokens under a secret of its own
               "src/auth/keyring_text.c",  # the keyring's file holds keys and service tokens
               "src/auth/keyring_mint.c",  # random bytes of an identifier, which is no secret
               "src/base/ed25519.c",  # signs
               "src/io/log_key.c",  # writes the key file
               "src/io/client_exchange.c",  # puts the token into Authorization; wiped after
               "src/io/oap_client_task.c"),  # puts it behind START; wiped after
     "reaches a secret's bytes: list the file in tools/tidylib/policy.py with a reason"),
    ("exit", calls("abort exit _exit _Exit quick_exit atexit"),
     SHIPPED, ("src/base/assert.c", "src/rt/", "src/app/", "src/cli/main.c"),
     "ends the process: answer an error, or assert"),
    ("float", words("float double"), SHIPPED, (), "is inexact: money and metrics are integers"),
    # Types of functions that return a struct or enum are fine: a parenthesis comes first.
    ("typedef-struct",
     r"\btypedef\s+(?:struct|union|enum)\b(?:\s*__attribute__.*?\)\))?[^;({]*[;{]",
     EVERYWHERE, (), "hides what it is: say struct x"),
    ("back-end-ifdef", IF + r"(?:RON_SIM|RT_SIM|RT_BACK_?END)\w*",
     EVERYWHERE, ("src/rt/sim/", "src/rt/thread/"), "splits what is proven from what ships"),
    ("sanitizer-ifdef", IF + r"(?:__SANITIZE\w*|__has_feature|RON_[AT]SAN)\b",
     EVERYWHERE, ("src/base/compiler.h", "src/base/arena.c", "src/rt/sim/", "src/rt/thread/"),
     "belongs to the listed files: base/compiler.h names the sanitizers once"),
]

# --- Sizes ---------------------------------------------------------------------------------------
SOURCE_LINES_MAX = 600
HEADER_LINES_MAX = 200
LINES_LIMIT = 1000  # even with a reason
LONG_FILE = re.compile(r"tidy: long file because \S")
FUNCTION_LINES_MAX = 70  # from { to }, both counted
COLUMNS_MAX = 100

# --- Text ----------------------------------------------------------------------------------------
WORK_MARKS = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:home|root|work|Users)/|/tmp/build")
# These name what they forbid.
TEXT_EXCEPTIONS = ("tools/tidylib/policy.py", "tests/tools/test_tidy.py")
# Input of parsers and programs, kept byte for byte.
DATA_FOLDERS = ("tests/vectors/", "tests/golden/", "tests/snippets/", "fuzz/corpus/")

# --- Folders and tests ---------------------------------------------------------------------------
# Each needs a README.md once it holds more than a meson.build; it covers its sub-folders.
README_FOLDERS = re.compile(
    r"(src/\w+|tests|fuzz|bench|sim|models|packaging|docs|tools|console)/")
UNIT_TESTS = "tests/unit/"
UNIT_FILES = re.compile(r"test_\w+\.c|support\.c|\w+\.h|meson\.build|README\.md")
