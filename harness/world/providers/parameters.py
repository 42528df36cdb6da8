"""The names of the documented parameters of models and of their clients, to detect misspelt ones."""

from __future__ import annotations

from typing import Final

_NAMES: Final = """
temperature top_p top_k min_p typical_p n best_of seed stop stop_sequences logit_bias logprobs top_logprobs
max_tokens max_completion_tokens max_output_tokens max_new_tokens min_tokens num_predict num_ctx num_keep
presence_penalty frequency_penalty repetition_penalty repeat_penalty repeat_last_n length_penalty
mirostat mirostat_eta mirostat_tau tfs_z use_beam_search ignore_eos skip_special_tokens echo suffix
response_format response_schema response_mime_type guided_json guided_regex guided_choice guided_grammar
structured_outputs grammar format json_schema text verbosity modalities response_modalities audio
reasoning reasoning_effort reasoning_budget thinking thinking_budget thinking_config thinking_level think effort
include_thoughts include_reasoning output_config chat_template chat_template_kwargs
tools tool_choice parallel_tool_calls functions function_call web_search_options mcp_servers container
candidate_count generation_config safety_settings safe_prompt cached_content labels
stream streaming stream_options stream_usage include truncation previous_response_id conversation background
user user_id metadata store service_tier inference_geo safety_identifier prediction prompt prompt_cache_key
prompt_cache_retention context_management cache_control betas keep_alive transforms route provider models plugins
priority random_seed prompt_truncation serving_mode
extra_headers extra_query extra_body default_headers default_query model_kwargs timeout request_timeout
max_retries num_retries base_url api_base api_key api_version openai_api_base openai_api_key anthropic_api_url
anthropic_api_key
"""

KNOWN_PARAMETERS: Final = frozenset(_NAMES.split())
"""Parameters of the APIs of OpenAI, Anthropic, Google, Mistral, Cohere, OCI, OpenRouter, vLLM and Ollama."""
