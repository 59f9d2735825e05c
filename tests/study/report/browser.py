"""A page in a headless browser."""

import re
import shutil
import subprocess

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def assert_fits(page, width, folder):
    """Check that a page of this width has nothing beside the screen, no broken picture, and no complaint."""
    probe = (
        "<script>addEventListener('load', () => { const wide = document.documentElement.scrollWidth - innerWidth;"
        " const broken = [...document.images].filter(i => !i.naturalWidth).length;"
        " document.title = `overflow ${wide} broken ${broken} fetched ${performance.getEntriesByType('resource')"
        ".filter(e => !e.name.startsWith('data:')).length}`; });</script>"
    )
    (folder / "page.html").write_text(page.replace("</body>", probe + "</body>"))
    # A frame of the width that is asked for: a headless window does not get narrower than 500 pixels.
    frame = (
        f'<iframe src="page.html" width={width} height=20000 style="border:0"></iframe><pre id=out></pre><script>'
        "addEventListener('load', () => setTimeout(() => { document.getElementById('out').textContent ="
        " frames[0].document.title }, 500))</script>"
    )
    (folder / "frame.html").write_text(frame)
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--allow-file-access-from-files", "--enable-logging=stderr", "--virtual-time-budget=8000",
         f"--user-data-dir={folder / 'profile'}", "--dump-dom", f"file://{folder / 'frame.html'}"],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    found = re.search(r"overflow -?\d+ broken \d+ fetched \d+", done.stdout.rsplit("<pre", 1)[1])
    assert found is not None
    assert found[0] == "overflow 0 broken 0 fetched 0"
    assert "CONSOLE" not in done.stderr
