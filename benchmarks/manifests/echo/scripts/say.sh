echo '{"said": "hello"}'
