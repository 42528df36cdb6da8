"""Recordings of MCP sessions, message by message."""
