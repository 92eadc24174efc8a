import os
import random
import secrets
import subprocess
import sys
import tempfile

import gen

SCRIPT = f"/app/{gen.KIND}.sh"
wrong = []
for number in range(10):
    # What a script left running may still write there.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as top:
        case = gen.make(random.Random(secrets.randbits(64)), top, number)
        kept = gen.tree(top)
        try:
            ran = subprocess.run(
                ["bash", "-c", 'ulimit -t 2; exec bash "$@"', "bash", SCRIPT, *case["args"]],
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=20,  # a busy machine is no fault of the script: what loops uses up its CPU time first
                check=False,
            )
        except subprocess.TimeoutExpired:
            wrong.append(f"{case['args']}: still running after 20 s")
            break
        found = {
            "stdout": ran.stdout.decode(errors="replace"),
            "status": ran.returncode,
            "tree": gen.tree(top),
            "stderr": ran.stderr.decode(errors="replace"),
        }
        wanted = {"stdout": "", "status": 0, "tree": kept, **case}
        for part in ("stdout", "status", "tree", *(["stderr"] if "stderr" in case else [])):
            if found[part] != wanted[part]:
                wrong.append(
                    f"{[os.path.basename(a) for a in case['args']]}: {part}\n  wanted {wanted[part]!r}\n  found  {found[part]!r}\n  ({found['stderr'][:300]!r})"
                )
print("\n".join(wrong[:6]) or "the script does as told")
sys.exit(bool(wrong))
