def worker(first, input_data, context):
    return {"real": True, "n": input_data.get("n"), "ask": False}
