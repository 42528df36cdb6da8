SYSTEM = "You answer questions about invoices."
