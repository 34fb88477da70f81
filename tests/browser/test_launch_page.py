"""The Launch page in a real Chromium: choices, downloads, screens, both themes."""

import io
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

JOB = "model=llama3.1-8b&num_tokens=1e12&gpu=H100-80GB-SXM&num_gpus=64&cloud=aws"
PAGE = f"/launch?{JOB}"


def test_a_chosen_launcher_is_downloaded_as_it_is_drawn(new_user):
    user = new_user()
    user.open(f"{PAGE}&stack=megatron-lm")
    box = user.page.get_by_role("combobox", name="Launcher")
    box.click()
    user.page.get_by_role("option", name="SLURM batch file").click()
    user.settle()
    expect(user.page.get_by_text("#SBATCH --nodes=8").first).to_be_visible()
    with user.page.expect_download() as asked:
        user.page.get_by_role("button", name="Download all as zip").click()
    content = Path(asked.value.path()).read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = {Path(n).name for n in archive.namelist()}
        (script,) = [n for n in archive.namelist() if n.endswith("job.sbatch")]
        assert b"#SBATCH --nodes=8" in archive.read(script)
    assert names == {"job.sbatch", "megatron_train.sh", "nccl_env.sh", "preflight.sh"}
