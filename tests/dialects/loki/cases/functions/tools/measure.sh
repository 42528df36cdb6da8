#!/usr/bin/env bash
# @describe Measure a thing
# @option --thing! What
# @option --unit[m|ft] <UNIT> Unit
# @option --marks* Marks
# @flag --loud Loud
main() {
    :
}
