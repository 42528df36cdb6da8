SYSTEM = "You help with broken devices."
