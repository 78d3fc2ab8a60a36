#!/bin/sh
# An evaluator that was written from docs/reference/evaluator-contract.md alone: precision at 10, in shell and awk.
# It keeps to the contract and to nothing else of the platform.
set -eu

request=$EVALUATOR_REQUEST

# The string value of a key at any depth of the request; enough for the keys that are read here.
value() { tr -d '\n' <"$request" | sed -n 's/.*"'"$1"'" *: *"\([^"]*\)".*/\1/p'; }

out=$(value output)
name=$(value run_file)
run=$(value run)/$name
qrels=$(value truths | head -n 1)

# "truths" is a key twice: of a measure (a file's name) and of the paths (a folder). Ask for both by their form.
folder=$(tr -d '\n' <"$request" | sed -n 's/.*"paths" *: *{[^}]*"truths" *: *"\([^"]*\)".*/\1/p')
file=$(tr -d '\n' <"$request" | sed -n 's/.*"measures" *: *\[[^]]*"truths" *: *"\([^"]*\)".*/\1/p')
measure=$(tr -d '\n' <"$request" | sed -n 's/.*"measures" *: *\[[^]]*"id" *: *"\([^"]*\)".*/\1/p')
qrels=$folder/$file

case $name in
*.gz) gzip -dc "$run" >/tmp/run.txt ;;
*) cat "$run" >/tmp/run.txt ;;
esac

: >"$out/scores.jsonl"
awk -v file="$name" '
    NF != 6 || $5 !~ /^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$/ {
        printf "{\"code\":\"F900\",\"severity\":\"error\",\"file\":\"%s\",\"line\":%d,", file, NR
        print "\"message\":\"the line has not six columns with a number in the fifth\",\"fix\":\"correct the line\"}"
    }' /tmp/run.txt >"$out/findings.jsonl"
errors=$(wc -l <"$out/findings.jsonl" | tr -d ' ')

if [ "$errors" -gt 0 ]; then
    cat >"$out/result.json" <<END
{"schema_version": 1, "status": "invalid", "evaluator": {"name": "shell", "version": "1"}, "measures": {},
 "findings": {"error": $errors, "defect": 0, "warning": 0,
              "codes": {"F900": {"severity": "error", "count": $errors, "title": "malformed line"}}},
 "run_tag": null, "message": "$errors malformed lines"}
END
    exit 0
fi

# Best first: by score, and equal scores by document, both descending.
sort -k1,1 -k5,5gr -k3,3r /tmp/run.txt | awk -v qrels="$qrels" -v measure="$measure" -v out="$out" '
    BEGIN {
        while ((getline line <qrels) > 0) {
            split(line, q, " ")
            judged[q[1]] = 1
            if (q[4] > 0) relevant[q[1], q[3]] = 1
        }
    }
    ++rank[$1] <= 10 && ($1, $3) in relevant { hits[$1]++ }
    END {
        for (topic in judged) {
            topics++
            if (topic in rank) covered++
            value = hits[topic] / 10
            sum += value
            printf "{\"measure\":\"%s\",\"topic\":\"%s\",\"value\":%.17g}\n", measure, topic, value >(out "/scores.jsonl")
        }
        printf "{\"schema_version\": 1, \"status\": \"valid\", \"evaluator\": {\"name\": \"shell\", \"version\": \"1\"}, " \
            >(out "/result.json")
        printf "\"measures\": {\"%s\": {\"value\": %.17g, \"topics\": %d, \"covered\": %d, \"interval\": null}}, ", \
            measure, sum / topics, topics, covered >(out "/result.json")
        print "\"findings\": {\"error\": 0, \"defect\": 0, \"warning\": 0, \"codes\": {}}, \"run_tag\": null, \"message\": \"\"}" \
            >(out "/result.json")
    }'
