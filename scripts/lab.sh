#!/usr/bin/env bash
# A throw-away Slurm with epplan on this machine: one node whose GPUs are
# simulated, slurmctld, slurmd, munged and epd, all in one folder, as root on
# Debian or Ubuntu. Nothing under /etc, /run or /var is touched but packages.
#
#   scripts/lab.sh up [--gpus N] [--dir DIR] [--web PORT]   start it
#   scripts/lab.sh env [--dir DIR]                          what a shell needs: eval "$(scripts/lab.sh env)"
#   scripts/lab.sh down [--dir DIR] [--keep]                stop it, and remove the folder
#
# bin/epplan and bin/epd have to be there: make build build-epd.
set -euo pipefail

usage() { sed -n '6,8s/^# *//p' "$0"; }
fail() {
	printf 'lab: %s\n' "$*" >&2
	exit 1
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dir=/tmp/epplan-lab gpus=8 web=8090 keep="" action=${1:-}
[ $# -eq 0 ] || shift
while [ $# -gt 0 ]; do
	case $1 in
	--gpus | --dir | --web)
		[ $# -gt 1 ] || fail "$1 wants a value"
		declare "${1#--}=$2"
		shift
		;;
	--keep) keep=yes ;;
	*) fail "unknown argument $1; $(usage)" ;;
	esac
	shift
done
case $dir in /*) ;; *) dir=$PWD/$dir ;; esac
[[ $gpus =~ ^[1-9][0-9]?$ ]] || fail "--gpus is $gpus, want a number from 1 to 99"
[[ $web =~ ^[1-9][0-9]{0,4}$ ]] && [ "$web" -le 65535 ] || fail "--web is $web, want a port"
# How this lab is named to the next call.
this=""
[ "$dir" = /tmp/epplan-lab ] || this=" --dir $dir"
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# state prints a line of lab.env, which says how the lab was made.
state() { sed -n "s/^$1=//p" "$dir/lab.env" 2>/dev/null; }

# safe refuses a folder that somebody else made or may write to: what is in it becomes commands here.
safe() {
	[ -n "$(find "${dir%/}" -maxdepth 0 -type d \( -uid 0 -o -uid "$(id -u)" \) ! -perm /022 2>/dev/null)" ] ||
		fail "$dir has to be a folder of root's or your own that nobody else may write to; name another one with --dir"
}

# ours tells whether a process that a pid file names belongs to this lab.
ours() {
	local pid
	pid=$(cat "$dir/run/$1.pid" 2>/dev/null) && [ -r "/proc/$pid/cmdline" ] || return 1
	cat "/proc/$pid/cmdline" "/proc/$pid/environ" 2>/dev/null | tr '\0' ' ' | grep -qF -- "$dir/"
}

# stop ends what a pid file names, within so many tenths of a second.
stop() {
	local pid tenths=$2
	if ours "$1"; then
		pid=$(cat "$dir/run/$1.pid")
		kill "$pid" 2>/dev/null || true
		while [ "$tenths" -gt 0 ] && ours "$1"; do
			sleep 0.1
			tenths=$((tenths - 1))
		done
		! ours "$1" || kill -KILL "$pid" 2>/dev/null || true
	fi
	rm -f "$dir/run/$1.pid"
}

# await repeats a command until it succeeds, for so many seconds.
await() {
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || fail "$what isn't ready; see $dir/log, then take it down: $0 down$this"
		sleep 0.1
	done
}

print_env() {
	[ -e "$dir/lab.env" ] || fail "there is no lab in $dir; start it: $0 up$this"
	safe
	cat <<-EOF
		export SLURM_CONF=$dir/etc/slurm.conf
		export EPPLAN_SOCKET=$dir/run/agent.sock EPPLAN_SUBMIT_SOCKET=$dir/run/submit.sock
		export EPD_GPU=$(state GPU) EPD_STATE=$dir/epd
		export PATH=$here/bin:\$PATH
	EOF
}

# ports finds a free block of three ports: slurmctld's, slurmd's, and one more.
ports() {
	local base
	for base in $(seq 26000 10 26990); do
		ss -Htln "sport >= :$base and sport <= :$((base + 2))" | grep -q . || {
			printf '%s' "$base"
			return
		}
	done
	fail "no free ports"
}

write_config() {
	local base=$1 g host
	host=$(hostname -s)
	cat >"$dir/etc/slurm.conf" <<-EOF
		ClusterName=lab
		SlurmctldHost=$host(127.0.0.1)
		SlurmctldPort=$base
		SlurmUser=slurm
		SlurmdUser=root
		AuthType=auth/munge
		AuthInfo=socket=$dir/munge/socket
		CryptoType=crypto/munge
		StateSaveLocation=$dir/state
		SlurmdSpoolDir=$dir/spool
		SlurmctldPidFile=$dir/run/slurmctld.pid
		SlurmdPidFile=$dir/run/slurmd.pid
		SlurmctldLogFile=$dir/log/slurmctld.log
		SlurmdLogFile=$dir/log/slurmd.log
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		MpiDefault=none
		SwitchType=switch/none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core_Memory
		SlurmdParameters=config_overrides
		SchedulerType=sched/backfill
		SchedulerParameters=bf_interval=2,sched_interval=5,batch_sched_delay=0
		PriorityType=priority/basic
		ReturnToService=2
		AccountingStorageType=accounting_storage/none
		KillWait=2
		GresTypes=gpu
		NodeName=gpu01 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((base + 1)) CPUs=32 RealMemory=64000 Gres=gpu:v100:$gpus State=UNKNOWN
		PartitionName=main Nodes=ALL Default=YES MaxTime=1-00:00:00 DefMemPerCPU=100 State=UP
	EOF
	# Fake GPUs: devices that nobody reads.
	for ((g = 0; g < gpus; g++)); do
		mknod -m 666 "$dir/dev/nvidia$g" c 1 3 2>/dev/null || ln -s /dev/null "$dir/dev/nvidia$g"
		printf 'NodeName=gpu01 Name=gpu Type=v100 File=%s\n' "$dir/dev/nvidia$g"
	done >"$dir/etc/gres.conf"
	printf 'CgroupAutomount=no\nConstrainCores=no\nConstrainRAMSpace=no\n' >"$dir/etc/cgroup.conf"
	# A third of the jobs is held out, so that a saving can be measured within a minute.
	# The simulated V100 has few clocks: none is within the usual 1.1.
	printf '[live]\nmode = "enforce"\nhold_out = 0.33\nexplore = 0\nmax_slowdown = 1.5\n\n[web]\ntoken_file = "%s"\n' "$dir/etc/web-tokens" >"$dir/etc/config.toml"
	(umask 077 && printf 'admin lab %s\n' "$(od -An -N 16 -tx1 /dev/urandom | tr -d ' \n')" >"$dir/etc/web-tokens")
}

start_slurm() {
	[ -s "$dir/munge/key" ] || (umask 077 && head -c 1024 /dev/urandom >"$dir/munge/key")
	munged --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" --num-threads=2 --pid-file="$dir/run/munged.pid" \
		--log-file="$dir/log/munged.log" --seed-file="$dir/munge/seed" 2>>"$dir/log/munged.err"
	await 60 munged test -S "$dir/munge/socket"
	setsid slurmctld -f "$SLURM_CONF" </dev/null >>"$dir/log/slurmctld.out" 2>&1
	await 60 slurmctld sh -c 'scontrol ping | grep -q "is UP"'
	setsid slurmd -N gpu01 -f "$SLURM_CONF" </dev/null >>"$dir/log/slurmd.out" 2>&1
	await 60 slurmd sh -c 'sinfo -h -o %T | grep -qx idle'
}

start_epd() {
	setsid "$here/bin/epd" --role both --node gpu01 --cluster lab --gpu "$(state GPU)" --state "$dir/epd" --config "$dir/etc/config.toml" \
		--socket "$dir/run/agent.sock" --submit-socket "$dir/run/submit.sock" --web "127.0.0.1:$web" \
		</dev/null >>"$dir/log/epd.log" 2>&1 &
	echo $! >"$dir/run/epd.pid"
	await 60 epd "$here/bin/epplan" status --socket "$dir/run/agent.sock"
	# Slurm gives its hooks no environment, and without epd that alone says which GPUs are simulated.
	printf '#!/bin/sh\nexport EPD_GPU="%s" EPD_STATE="%s"\nexec "%s" "$@"\n' "$(state GPU)" "$dir/epd" "$here/bin/epplan" >"$dir/etc/epplan"
	chmod 755 "$dir/etc/epplan"
	"$here/bin/epplan" install slurm --edit-conf --dir "$dir/etc" --program "$dir/etc/epplan" --journal "$dir/epd/journal" \
		--socket "$dir/run/agent.sock" --submit-socket "$dir/run/submit.sock" >>"$dir/log/install.log" 2>&1 ||
		fail "epplan install slurm failed; see $dir/log/install.log"
	scontrol reconfigure
}

up() {
	[ "$(id -u)" = 0 ] || fail "a Slurm of its own needs root; in a container that is enough"
	[ ! -e "$dir/lab.env" ] || fail "there is a lab in $dir; take it down first: $0 down$this"
	mkdir -p -m 755 "$dir"
	safe
	[ -x "$here/bin/epplan" ] && [ -x "$here/bin/epd" ] || fail "bin/epplan and bin/epd aren't there: make build build-epd"
	"$here/scripts/test-packages.sh" slurmctld slurmd slurm-client munge lua5.1 lua-socket procps iproute2
	! ss -Htln "sport = :$web" | grep -q . || fail "port $web is taken; name another one: $0 up$this --web PORT"
	mkdir -p "$dir"/{etc,run,log,dev,spool,state,munge,epd}
	chmod 755 "$dir"
	chmod 700 "$dir/epd"
	chown slurm: "$dir/state" "$dir/log"
	printf 'GPU=sim:%d,model=V100\nWEB=%s\n' "$gpus" "$web" >"$dir/lab.env"
	export SLURM_CONF=$dir/etc/slurm.conf
	write_config "$(ports)"
	start_slurm
	start_epd
	printf 'lab: %s with %d simulated GPUs in %s, pages at http://127.0.0.1:%s\n' "$(sinfo --version)" "$gpus" "$dir" "$web"
	printf 'lab: next: eval "$(scripts/lab.sh env%s)"\n' "$this"
}

down() {
	[ -e "$dir/lab.env" ] || fail "there is no lab in $dir"
	safe
	export SLURM_CONF=$dir/etc/slurm.conf
	if ours slurmctld; then
		timeout 10 squeue -h -o %A 2>/dev/null | sort -u | xargs -r timeout 10 scancel 2>/dev/null || true
		for _ in $(seq 50); do
			[ -n "$(timeout 5 squeue -h 2>/dev/null)" ] || break
			sleep 0.2
		done
	fi
	stop slurmd 80
	stop slurmctld 150
	stop epd 100
	stop munged 50
	[ -n "$keep" ] || rm -rf -- "$dir"
}

case $action in
up) up ;;
down) down ;;
env) print_env ;;
*)
	usage
	[ "$action" = help ] || [ "$action" = --help ] || exit 2
	;;
esac
