"""devlib - what the developer tools share: the tree, child processes, test results."""
