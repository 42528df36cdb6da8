"""Which of the scenarios that were found run: by their words (`-k`), one shard of them, those that a change touches.

`harness run` and the pytest plugin ask the same functions; they know scenarios, and neither pytest nor the command
line.
"""
