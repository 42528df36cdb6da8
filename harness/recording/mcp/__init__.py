"""Records and replays MCP sessions, message by message.

A client session talks to a `Proxy`. It asks an `MCPRecorder` for a recorded exchange that answers (`replay`), and
forwards to the real server through an `MCPConnection` if there is none.
"""
