"""The library's commands: each parses its options, calls the library and prints the answer."""
