"""The command line: `main` is the command, one module each for what follows it. They parse, call and print."""
