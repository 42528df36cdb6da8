RECIPES = {"baker": {"flour": 500}}
