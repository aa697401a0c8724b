#!/bin/sh
# Prints the regrets of models and probes on the shared measured tables by two builds of epplan, in percent, and
# marks those that the second one makes worse by more than 0.05:
#   scripts/fit-figures.sh OLD-EPPLAN NEW-EPPLAN [DATA]
# DATA is the folder of shared data, ../shared/data unless given. SLOWDOWN=0.05 bounds run times.
set -eu
[ $# -ge 2 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
old=$1 new=$2 data=${3:-$(dirname "$0")/../../shared/data}
slow=${SLOWDOWN:+--slowdown $SLOWDOWN}

# regret prints a column of the row of all applications.
regret() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) n = i } $1 == "(all)" { print 100 * $n }'; }

figures() { # PROGRAM TABLE MODEL
    # shellcheck disable=SC2086 # slow is two words or none
    all=$("$1" model fit "$2" --gpu-model "$3" --evaluate --csv $slow 2>/dev/null)
    for column in full_fit_regret loso_regret; do
        echo "$all" | regret $column
    done
    for probes in 1 2 3; do
        # shellcheck disable=SC2086
        "$1" model evaluate "$2" --leave-one-workload-out --probes $probes --csv $slow 2>/dev/null | regret regret
    done
}

printf '%-22s %-10s %8s %8s\n' table figure old new
while read -r table model; do
    before=$(figures "$old" "$data/$table.csv" "$model")
    after=$(figures "$new" "$data/$table.csv" "$model")
    for name in full left-out 1-probe 2-probes 3-probes; do
        echo "$table $name"
    done | {
        n=0
        while read -r label name; do
            n=$((n + 1))
            echo "${label#*/} $name $(echo "$before" | sed -n ${n}p) $(echo "$after" | sed -n ${n}p)"
        done
    } | awk '{ printf "%-22s %-10s %8.3f %8.3f%s\n", $1, $2, $3, $4, ($4 > $3 + 0.05 ? "  worse" : "") }'
done <<EOF
dvfs/gtx1080ti GTX1080Ti
dvfs/rtx2070s RTX2070S
dvfs/v100_2022 V100-2022
dvfs/v100 V100
dvfs/gtx980_high GTX980
dvfs/gtx980_low GTX980-low
dvfs/a100_sxm A100
dvfs/a40_bloom A40
powercap/grid_a100_80gb_pcie A100-PCIE-80GB
powercap/zeus_a40 A40
powercap/zeus_v100 V100
EOF
