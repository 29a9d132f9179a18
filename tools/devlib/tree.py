"""tree.py - the files of the project: tracked, and untracked but not ignored."""
import os
import subprocess


def git_environment():
    """The environment without variables that would point git at another repository."""
    return {key: value for key, value in os.environ.items()
            if key not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")}


def list_files(root):
    """Paths relative to root, sorted; files deleted but still in the index are left out."""
    listing = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, env=git_environment()).stdout
    paths = {os.fsdecode(path) for path in listing.split(b"\0") if path}
    return sorted(path for path in paths if os.path.isfile(os.path.join(root, path)))
