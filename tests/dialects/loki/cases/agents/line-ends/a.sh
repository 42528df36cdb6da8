#!/bin/bash
echo "{\"k\": 1}"
