# Start on every node, with: bash preflight.sh [FILE...], the files of the training stack; without
# them, every file beside this one.
# Exit status: 0 all is well, 3 a value is still to be filled in, 10 GPU count or kind, 11 driver, 12 link, 13 clocks, temperature or
# memory errors, 14 NCCL test, 15 disk; of several the first.
EXPECTED_GPUS=@COUNT@
EXPECTED_GPU=@KIND@    # in the name that nvidia-smi prints; empty: any
NODES=@NODES@
FABRIC=@FABRIC@
# Limits of yours; empty: the figure is printed and not judged.
MIN_BUSBW_GBPS="${MIN_BUSBW_GBPS:-}"
MIN_DISK_MBPS="${MIN_DISK_MBPS:-}"
DISK_DIR="${DISK_DIR:-.}"
DISK_MIB="${DISK_MIB:-1024}"
PYTHON="${PYTHON:-python3}"
set -u
first=0
failed() { echo "FAIL $2"; [ "$first" -ne 0 ] || first=$1; }
passed() { echo "ok   $1"; }
told() { echo "     $1"; }
have() { command -v "$1" >/dev/null 2>&1; }
limited() { timeout --kill-after=5 "$@" </dev/null; }
smi() { limited 60 nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits 2>/dev/null; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

# 0. Files: no value is left to fill in.
[ "$#" -ne 0 ] || set -- "$(dirname -- "$0")"/*
todo=$(grep -sH -d skip '^# TODO runcast: ' -- "$@")
if [ -n "$todo" ]; then
  failed 3 "$(printf '%s\n' "$todo" | wc -l) values are still to be filled in:"
  printf '%s\n' "$todo" | sed 's/:# TODO runcast: /: /; s/^/       /'
else
  passed "no value is left to fill in"
fi

# 1. GPUs: as many as the plan has, all of its kind.
gpus=0
if ! have nvidia-smi; then
  failed 10 "nvidia-smi is not here: no NVIDIA driver, or the container has no GPU"
elif ! names=$(smi name) || [ -z "$names" ]; then
  failed 10 "nvidia-smi lists no GPU: $(limited 60 nvidia-smi -L 2>&1 | head -n 1)"
else
  gpus=$(printf '%s\n' "$names" | wc -l)
  others=$(printf '%s\n' "$names" | grep -vicF -- "$EXPECTED_GPU")
  if [ "$gpus" -ne "$EXPECTED_GPUS" ]; then
    failed 10 "$gpus GPUs, and the plan has $EXPECTED_GPUS a node"
  elif [ -n "$EXPECTED_GPU" ] && [ "$others" -ne 0 ]; then
    failed 10 "$others GPUs are no $EXPECTED_GPU: $(printf '%s\n' "$names" | sort -u | tr '\n' ';')"
  else
    passed "$gpus GPUs: $(printf '%s\n' "$names" | sort -u | tr '\n' ';')"
  fi
fi

# 2. Driver: one version on all GPUs, and one that torch can work with.
if [ "$gpus" -eq 0 ]; then
  failed 11 "no driver answers"
else
  drivers=$(smi driver_version | sort -u)
  if [ "$(printf '%s\n' "$drivers" | wc -l)" -ne 1 ]; then
    failed 11 "GPUs answer with several drivers: $(printf '%s\n' "$drivers" | tr '\n' ' ')"
  else
    passed "driver $drivers"
  fi
fi
torch=no
if have "$PYTHON" && limited 120 "$PYTHON" -c 'import torch' >/dev/null 2>&1; then
  torch=yes
  seen=$(limited 120 "$PYTHON" -c 'import torch; print(torch.cuda.device_count(), torch.version.cuda)' 2>/dev/null)
  told "torch sees ${seen:-nothing} (GPUs, its CUDA)"
  if [ "$gpus" -ne 0 ] && [ "${seen%% *}" != "$gpus" ]; then
    failed 11 "torch sees ${seen%% *} of $gpus GPUs: it was built for another driver"
  fi
else
  told "torch is not importable with $PYTHON: its part of the checks is left out"
fi

# 3. Links: NVLink inside the node, the network's adapters where there are several nodes.
if [ "$gpus" -gt 1 ]; then
  links=$(limited 60 nvidia-smi nvlink --status 2>/dev/null)
  if [ -z "$links" ]; then
    told "no NVLink is reported"
  elif printf '%s\n' "$links" | grep -qi inactive; then
    failed 12 "$(printf '%s\n' "$links" | grep -ci inactive) NVLinks are inactive: nvidia-smi nvlink --status"
  else
    passed "$(printf '%s\n' "$links" | grep -c 'GB/s') NVLinks are up"
  fi
fi
if [ "$NODES" -gt 1 ]; then
  up=0 down=0
  for port in /sys/class/infiniband/*/ports/*/state; do
    [ -r "$port" ] || continue
    if grep -q ACTIVE "$port"; then up=$((up + 1)); else down=$((down + 1)); fi
  done
  case "$FABRIC" in
  *infiniband* | *roce* | *efa*)
    if [ "$up" -eq 0 ]; then
      failed 12 "no port of a fast network is active, and the plan has $FABRIC"
    else
      passed "$up ports of $FABRIC are active"
      [ "$down" -eq 0 ] || told "$down ports are not: do they belong to it?"
    fi
    ;;
  *)
    links=0
    for state in /sys/class/net/*/operstate; do
      case "$state" in */lo/* | */docker* | */veth*) continue ;; esac
      grep -q up "$state" 2>/dev/null && links=$((links + 1))
    done
    if [ "$links" -eq 0 ]; then
      failed 12 "no network interface is up"
    else
      passed "$links network interfaces are up (fabric: ${FABRIC:-not known})"
    fi
    ;;
  esac
fi

# 4. Clocks that are held down, heat, memory errors that were not corrected.
if [ "$gpus" -eq 0 ]; then
  failed 13 "clocks cannot be read without a GPU"
else
  told "clocks now and at most (MHz), temperature (C), watts now and at most, of each GPU:"
  smi clocks.sm,clocks.max.sm,temperature.gpu,power.draw,power.limit | sed 's/^/       /'
  held=$(smi clocks_throttle_reasons.hw_slowdown,clocks_throttle_reasons.hw_thermal_slowdown,clocks_throttle_reasons.hw_power_brake_slowdown | grep -cE '(^|, )Active')
  broken=$(smi ecc.errors.uncorrected.volatile.total | grep -cE '^[1-9]')
  busy=$(smi memory.used | awk '$1 > 1024' | wc -l)
  if [ "$held" -ne 0 ]; then
    failed 13 "$held GPUs are slowed down by hardware: heat or power"
  elif [ "$broken" -ne 0 ]; then
    failed 13 "$broken GPUs have memory errors that were not corrected"
  else
    passed "no GPU is slowed down by hardware, none has uncorrected memory errors"
  fi
  [ "$busy" -eq 0 ] || told "$busy GPUs hold more than 1 GiB already: whose process is that?"
fi

# 5. One all-reduce of 256 MiB over the GPUs of this node.
if [ "$gpus" -eq 0 ]; then
  failed 14 "NCCL cannot be tried without a GPU"
elif [ "$gpus" -eq 1 ]; then
  told "one GPU: no all-reduce to try"
else
  rate=""
  if have all_reduce_perf; then
    out=$(limited 300 all_reduce_perf -b 256M -e 256M -g "$gpus" 2>&1)
    status=$?
    rate=$(printf '%s\n' "$out" | awk '/Avg bus bandwidth/ { print $NF }')
  elif [ "$torch" = yes ]; then
    out=$(PREFLIGHT_GPUS=$gpus timeout --kill-after=5 300 "$PYTHON" - 2>&1 <<'PY'
import os, sys, time
import torch, torch.distributed as dist

gpus = int(os.environ["PREFLIGHT_GPUS"])


def work(rank):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=gpus)
    x = torch.full((64 * 2**20,), float(rank + 1), device="cuda")
    dist.all_reduce(x)
    right = bool((x == gpus * (gpus + 1) / 2).all())
    times = []
    for _ in range(20):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        dist.all_reduce(x)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
    if not right:
        os._exit(3)
    if rank == 0:
        rate = x.numel() * 4 * 2 * (gpus - 1) / gpus / sorted(times)[10] / 1e9
        print(f"busbw_gbps {rate:.1f}", flush=True)
    dist.destroy_process_group()


os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29511")
children = []
for rank in range(gpus):
    child = os.fork()
    if child == 0:
        try:
            work(rank)
        except BaseException as e:
            print(e, flush=True)
            os._exit(1)
        os._exit(0)
    children.append(child)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) != 0 for c in children))
PY
    )
    status=$?
    rate=$(printf '%s\n' "$out" | awk '/^busbw_gbps/ { print $2 }')
  else
    out="neither nccl-tests nor torch is here"
    status=1
  fi
  if [ "$status" -ne 0 ] || [ -z "$rate" ]; then
    failed 14 "the all-reduce failed (status $status): $(printf '%s\n' "$out" | tail -n 1)"
  elif [ -n "$MIN_BUSBW_GBPS" ] && below "$rate" "$MIN_BUSBW_GBPS"; then
    failed 14 "all-reduce at $rate GB/s of bus bandwidth, under $MIN_BUSBW_GBPS"
  else
    passed "all-reduce of 256 MiB at $rate GB/s of bus bandwidth"
  fi
fi

# 6. Disk: what a checkpoint is written to (DISK_DIR names the folder).
if ! probe=$(mktemp "$DISK_DIR/preflight.XXXXXX" 2>/dev/null); then
  failed 15 "nothing can be written to $DISK_DIR"
else
  begun=$(date +%s%N)
  if limited 120 dd if=/dev/zero of="$probe" bs=1M count="$DISK_MIB" conv=fsync status=none; then
    rate=$(awk -v ns=$(($(date +%s%N) - begun)) -v mib="$DISK_MIB" 'BEGIN { printf "%.0f", mib * 1048.576 / (ns / 1e6) }')
    if [ -n "$MIN_DISK_MBPS" ] && below "$rate" "$MIN_DISK_MBPS"; then
      failed 15 "$DISK_DIR takes $rate MB/s, under $MIN_DISK_MBPS"
    else
      passed "$DISK_DIR takes $rate MB/s ($DISK_MIB MiB, synced)"
    fi
  else
    failed 15 "writing $DISK_MIB MiB to $DISK_DIR failed or took over 120 s"
  fi
  rm -f "$probe"
fi

if [ "$first" -eq 0 ]; then echo "All is well."; else echo "Something is wrong: status $first."; fi
exit "$first"
