"""Selection of scenarios: by keywords (`-k`), by shard, and by the changes that affect them.

`harness run` and the pytest plugin use the same functions, which depend neither on pytest nor on the command line.
"""
