"""tidylib - the rules of tools/tidy: policy.py is what they say, checks.py how they are checked."""
