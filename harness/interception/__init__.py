"""Intercepts the HTTP requests of this process while a scenario runs. Each family of clients has its module."""
