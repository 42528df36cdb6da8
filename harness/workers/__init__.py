"""Running scenarios in processes of their own, side by side or apart."""
