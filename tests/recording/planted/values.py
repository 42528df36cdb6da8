"""The secrets that are planted: in the environment, in manifests, and in what servers answer."""

VARIABLES = {
    "OPENAI_API_KEY": "sk-proj-Qm4tVZ81xYw0/plus+Kd7Lr2",
    "ANTHROPIC_API_KEY": "sk-ant-api03-7hGf2LkPq9ZtXw5R",
    "CRM_TOKEN": "crm-94bTq/8&x=Zy+tail",
    "VAULT_TOKEN": "hvs.CAESIJ3xw8Zq1YtRb",
    "DESK_TOKEN": "dsk_5f0c2e91ab7744d8",
    "TOOL_SECRET": 'quote"and\\slash-71Gq',
    "STREAMED_PASSWORD": "Wq7-correct-horse-91",
    "TYPED_PASSWORD": "pw-Typed-6630-Zx",
    "RAISED_SECRET": "raised-K29x-~umlaut!04",
}
OTHERS = {name: f"other-{number}-{value[::-1]}" for number, (name, value) in enumerate(VARIABLES.items())}
LOGIN = "u-Pass-5521word"  # of the base URL
MANIFEST_KEY = "sk-manifest-0Bq6Yt3mZr"
LITERAL = {
    "base URL login": LOGIN,
    "api_key of a manifest": MANIFEST_KEY,
    "header of a node": "nodehdr-83hfKq02Lm",
    "query parameter": "qry-5Tg6Yh7Uj8Ik",
    "field of a JSON body": "cs-1Qa2Ws3Ed4Rf",
    "field of a form": "frm-9Ol8Ik7Uj6Yh",
    "access token of a response": "eyJhbGciOi.J9-access-77Xz",
    "cookie of a response": "sess-Pp0Oo9Ii8Uu7",
    "argument of an MCP tool": "arg-2Wsx3Edc4Rfv",
    "access token of an MCP tool": "mcp-access-6Yhn7Ujm",
}
SECRETS = {**VARIABLES, **LITERAL}
# What the provider quotes of a key that it refuses.
ECHO = "Incorrect API key provided: sk-proj-***7Lr2, of sk-proj-Qm4tVZ81xYw0/plus+Kd7Lr2."
