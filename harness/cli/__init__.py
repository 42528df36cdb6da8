"""The command line: `main` is the entry point; each subcommand is a module that parses, calls and prints."""
