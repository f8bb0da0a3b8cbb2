#!/usr/bin/env python3
"""Reports in a browser: no errors, the time line moves by keys and mouse and stays smooth. And the page of serve: its
controls, two sides, state in the link, a search.

    browser_test.py PROGRAM SOURCE BUILD [Class.test...]

Needs Debian's chromium, chromium-driver and python3-selenium; without them it says so and is skipped
(exit code 77). tools/axe fetches axe-core; without it those tests are skipped that need it.
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
AXE = pathlib.Path(sys.argv[2], "build/axe/axe.min.js")
STUDY = "gpt3-175b-a100-1024"


FAULTS_OF_NAMES = """
  const faults = [];
  if (!document.documentElement.lang) faults.push('no language');
  if (document.querySelectorAll('h1').length !== 1) faults.push('not one h1');
  for (const one of document.querySelectorAll('button, canvas, input, select, textarea, svg:not([aria-hidden])'))
    if (!one.getAttribute('aria-label') && !one.textContent.trim() && !one.labels?.length)
      faults.push('no name: ' + one.outerHTML.slice(0, 80));
  const ids = [...document.querySelectorAll('[id]')].map(one => one.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push('twice: ' + id);
  return faults;"""


class WithBrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name)
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1280,1600", f"--user-data-dir={cls.path}/profile"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        cls.addClassCleanup(cls.driver.quit)

    def faults_of_access(self):
        """What axe-core finds on the page that is open: rules of WCAG 2.1 A and AA and its own best practices."""
        if not AXE.exists():
            self.skipTest("axe-core is not there: tools/axe fetches it")
        self.driver.execute_script(AXE.read_text())
        return self.driver.execute_async_script("""
            const done = arguments[0];
            axe.run().then(found => done(found.violations.map(
                one => one.id + ': ' + one.nodes.map(node => node.target.join(' ')).join(', '))));""")


class Browser(WithBrowser):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([PROGRAM, "report", STUDY, "-o", "report.html"], cwd=cls.path, check=True)
        (cls.path / "empty.html").write_text("<!DOCTYPE html><html lang=en><title>x</title><p>x")

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
        self.assertEqual(self.driver.execute_script(FAULTS_OF_NAMES), [])

    def test_axe_finds_nothing_but_what_is_planted(self):
        self.opened()
        self.assertEqual(self.faults_of_access(), [])
        self.driver.execute_script("""
            document.querySelector('main, body').insertAdjacentHTML('beforeend', '<button id=planted></button>')""")
        self.assertEqual(self.faults_of_access(), ["button-name: #planted"])

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


class Serve(WithBrowser):
    """The page of serve, of a study that simulates in milliseconds."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = subprocess.Popen([PROGRAM, "serve", "gpt-1.7b-a100-8"], text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.server.communicate)
        cls.addClassCleanup(cls.server.kill)
        cls.link = cls.server.stdout.readline().strip()

    def setUp(self):
        self.driver.get("about:blank")
        self.open()

    def tearDown(self):
        self.assertEqual([one for one in self.driver.get_log("browser")], [])

    def open(self, fragment=""):
        self.driver.get(self.link + fragment)
        self.drawn()

    def until(self, condition):
        return WebDriverWait(self.driver, 30, poll_frequency=0.05).until(lambda _: condition())

    def side(self, name="A"):
        return self.driver.find_element(By.ID, name)

    def drawn(self, name="A", what=("figures", "all")):
        self.until(lambda: self.side(name).get_attribute("data-drawn") in what
                   and "stale" not in self.side(name).get_attribute("class"))

    def control(self, key, name="A"):
        return self.side(name).find_element(By.NAME, key)

    def figure(self, title, name="A"):
        return self.driver.execute_script(
            "return [...document.querySelectorAll(`#${arguments[0]} dt`)].find(one => one.textContent === arguments[1])"
            ".nextSibling.textContent", name, title)

    def changes_to(self, before, name="A"):
        """The step, once it is another one."""
        self.until(lambda: self.figure("step", name) != before)
        self.drawn(name)
        return self.figure("step", name)

    def test_a_page_with_all_pictures(self):
        self.drawn(what=("all",))
        titles = [one.get_attribute("textContent")
                  for one in self.driver.find_elements(By.CSS_SELECTOR, ".sections svg > title")]
        self.assertGreater(len(titles), 4, titles)
        self.assertEqual(self.driver.execute_script(FAULTS_OF_NAMES), [])
        self.assertFalse(self.driver.execute_script("return performance.getEntriesByType('resource').some("
                                                    "one => !one.name.startsWith(location.origin))"))

    def test_axe_finds_nothing(self):
        self.drawn(what=("all",))
        self.assertEqual(self.faults_of_access(), [])

    def test_controls_by_keys_mouse_and_choice(self):
        step = self.figure("step")
        self.control("strategy.micro_batch").send_keys(Keys.ARROW_UP)
        self.assertEqual(self.control("strategy.micro_batch").get_attribute("value"), "4")
        step = self.changes_to(step)
        self.control("strategy.micro_batch").find_element(By.XPATH, "../button[@value='-']").click()
        step = self.changes_to(step)
        self.control("strategy.recompute").send_keys("full")
        self.changes_to(step)
        self.assertIn("strategy.recompute=full", self.driver.current_url)
        self.assertNotIn("micro_batch", self.driver.current_url)  # as the study has it again

    def test_data_parallel_follows(self):
        step = self.figure("step")
        self.control("strategy.tensor_parallel").send_keys(Keys.ARROW_UP)
        self.changes_to(step)
        self.assertEqual(self.control("strategy.data_parallel").get_attribute("value"), "1")

    def test_state_is_in_the_link(self):
        step = self.figure("step")
        self.control("strategy.micro_batch").send_keys(Keys.ARROW_DOWN)
        self.changes_to(step)
        self.driver.find_element(By.ID, "beside").click()
        self.drawn("B")
        step = self.figure("step", "B")
        self.control("strategy.zero_stage", "B").send_keys("1")
        self.changes_to(step, "B")
        self.assertRegex(self.driver.find_element(By.ID, "difference").text, r"B against A: step [-+][0-9.]+ %, MFU")
        figures = [self.figure("step", name) for name in "AB"]
        link = self.driver.current_url
        self.driver.get("about:blank")
        self.driver.get(link)
        self.drawn("A")
        self.drawn("B")
        self.assertEqual([self.figure("step", name) for name in "AB"], figures)
        self.assertEqual(self.control("strategy.zero_stage", "B").get_attribute("value"), "1")
        self.assertEqual(self.control("strategy.micro_batch", "B").get_attribute("value"), "1")

    def test_what_is_wrong_is_said_and_mended(self):
        self.control("strategy.global_batch").clear()
        self.control("strategy.global_batch").send_keys("33")
        self.until(
            lambda: "do not divide" in self.side().find_element(By.CSS_SELECTOR, ".fault").text)
        self.side().find_element(By.CSS_SELECTOR, "button[value=reset]").click()
        self.drawn()
        self.assertFalse(self.side().find_element(By.CSS_SELECTOR, ".fault").is_displayed())
        self.assertEqual(self.control("strategy.global_batch").get_attribute("value"), "32")

    def test_yaml_and_command(self):
        self.control("strategy.micro_batch").send_keys(Keys.ARROW_UP)
        self.drawn()
        text = self.side().find_element(By.CSS_SELECTOR, "textarea")
        self.side().find_element(By.CSS_SELECTOR, "button[value=yaml]").click()
        self.until(lambda: "micro_batch: 4" in text.get_attribute("value"))
        self.side().find_element(By.CSS_SELECTOR, "button[value=command]").click()
        self.until(lambda: "--set strategy.micro_batch=4" in text.get_attribute("value"))

    def test_a_search_is_taken_over(self):
        step = self.figure("step")
        self.side().find_element(By.CSS_SELECTOR, "button[value=search]").click()
        self.until(lambda: self.side().find_elements(By.XPATH, ".//button[.='take it']"))[0].click()
        self.changes_to(step)
        self.assertIn("fill=0", self.driver.current_url)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
