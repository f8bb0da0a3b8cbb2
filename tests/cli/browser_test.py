#!/usr/bin/env python3
"""Reports in a browser: no errors, the time line moves by keys and mouse and stays smooth.

    browser_test.py PROGRAM SOURCE BUILD [Class.test...]

Needs Debian's chromium, chromium-driver and python3-selenium; without them it says so and is skipped
(exit code 77).
"""

import base64
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.common.print_page_options import PrintOptions
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    print("skipped: python3-selenium is not installed")
    sys.exit(77)
if not all(pathlib.Path("/usr/bin", name).exists() for name in ("chromium", "chromedriver")):
    print("skipped: chromium and chromium-driver are not installed")
    sys.exit(77)

PROGRAM = sys.argv[1]
STUDY = "gpt3-175b-a100-1024"


class Browser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name)
        subprocess.run([PROGRAM, "report", STUDY, "-o", "report.html"], cwd=cls.path, check=True)
        (cls.path / "empty.html").write_text("<!DOCTYPE html><html lang=en><title>x</title><p>x")
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1280,1600", f"--user-data-dir={cls.path}/profile"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        cls.addClassCleanup(cls.driver.quit)

    def open(self, name="report.html"):
        self.driver.get(f"file://{self.path}/{name}")

    def opened(self):
        self.open()
        WebDriverWait(self.driver, 30).until(
            lambda driver: driver.execute_script("return document.documentElement.dataset.ready"))
        return self.driver.find_element(By.ID, "line-canvas")

    def picture(self):
        # two frames later, what was asked for is drawn
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")
        return self.driver.execute_script(
            "return document.getElementById('line-canvas').toDataURL()")

    def test_no_errors(self):
        self.opened()
        self.picture()
        self.assertEqual([one for one in self.driver.get_log("browser")], [])

    def test_it_moves_by_keys(self):
        canvas = self.opened()
        canvas.click()
        whole = self.picture()
        canvas.send_keys("+" * 8)
        zoomed = self.picture()
        self.assertNotEqual(whole, zoomed)
        canvas.send_keys(Keys.ARROW_RIGHT)
        panned = self.picture()
        self.assertNotEqual(zoomed, panned)
        canvas.send_keys(Keys.ARROW_LEFT)
        canvas.send_keys("0")
        self.assertEqual(self.picture(), whole)
        height = "return document.querySelector('#line-rows > div').style.height"
        rows = self.driver.execute_script(height)
        canvas.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_DOWN, " ")
        self.picture()
        self.assertNotEqual(rows, self.driver.execute_script(height))

    def test_tasks_are_counted(self):
        canvas = self.opened()
        canvas.click()
        canvas.send_keys(Keys.ENTER)
        table = self.driver.find_element(By.ID, "line-kernels")
        self.assertTrue(table.is_displayed())
        self.assertGreater(len(table.find_elements(By.CSS_SELECTOR, "tbody tr")), 3)

    def test_it_moves_by_mouse(self):
        canvas = self.opened()
        canvas.click()
        canvas.send_keys("+" * 6)
        before = self.picture()
        ActionChains(self.driver).move_to_element(canvas).click_and_hold().move_by_offset(
            -200, 0).release().perform()
        self.assertNotEqual(before, self.picture())
        ActionChains(self.driver).move_to_element_with_offset(canvas, 50, -150).perform()
        self.picture()

    def test_it_prints(self):
        self.opened()
        pdf = base64.b64decode(self.driver.print_page(PrintOptions()))
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertGreater(len(pdf), 20_000)

    def test_it_fits_a_narrow_window(self):
        self.driver.set_window_size(700, 900)
        self.addCleanup(self.driver.set_window_size, 1280, 1600)
        self.opened()
        wide = self.driver.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        self.assertLessEqual(wide, 0)

    def test_names_and_roles(self):
        """What a reader who hears the page needs: a language, one heading first, names of controls."""
        self.opened()
        faults = self.driver.execute_script("""
          const faults = [];
          if (!document.documentElement.lang) faults.push('no language');
          if (document.querySelectorAll('h1').length !== 1) faults.push('not one h1');
          for (const one of document.querySelectorAll('button, canvas, svg:not([aria-hidden])'))
            if (!one.getAttribute('aria-label') && !one.textContent.trim())
              faults.push('no name: ' + one.outerHTML.slice(0, 80));
          const ids = [...document.querySelectorAll('[id]')].map(one => one.id);
          for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push('twice: ' + id);
          return faults;""")
        self.assertEqual(faults, [])

    def test_frames_are_short(self):
        """Printed, not judged by the clock: script time of a frame, and first paint as a ratio."""
        def painted(name):
            self.open(name)
            return WebDriverWait(self.driver, 30).until(lambda driver: driver.execute_script(
                "const [p] = performance.getEntriesByType('paint'); return p && p.startTime"))
        empty = min(painted("empty.html") for _ in range(3))
        report = min(painted("report.html") for _ in range(3))
        canvas = self.opened()
        canvas.click()
        for _ in range(20):
            canvas.send_keys("+")
            self.picture()
        frames = sorted(self.driver.execute_script("return window.foreshardFrames"))
        p95 = frames[int(0.95 * (len(frames) - 1))]
        print(f"first paint {report / empty:.2f} x an empty page's; script time of a frame, p95: "
              f"{p95:.1f} ms")
        self.assertGreater(len(frames), 10)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
