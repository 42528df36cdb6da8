echo "no water" >&2
exit 4
