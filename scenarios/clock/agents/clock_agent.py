"""A Python agent of the mesh."""

import clock_suite


async def both(llm_response, input_data, context):
    return {"blocking": clock_suite.blocking(), "waiting": await clock_suite.waiting()}
