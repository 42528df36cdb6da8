import socket
import sys

try:
    socket.create_connection(("127.0.0.1", 9), timeout=2)
except OSError as error:
    sys.exit(f"no network: {type(error).__name__}")  # a traceback would say where this file is
