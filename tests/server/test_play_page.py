"""The page of `recbert play` in Debian's Chromium, as somebody types and reads it."""

import contextlib
import json
import re
import shutil
import string
import subprocess

import httpx
import pytest
import tensorflow as tf
from harness import randomize
from served import asking
from toy_texts import tiny_model

from keras_recbert.config import ServeConfig
from keras_recbert.data.word_spans import find_words
from keras_recbert.server import running
from keras_recbert.train.masked_words import explain_words

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed"
)
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium"),
]
HOSTILE = "<script>document.title='x'</script><img src=x onerror=\"alert('good')\">"
AWKWARD = [
    "It's a don't-miss film, isn't it?",
    "U.S. films cost 1,000.50 -- or more... ``good''",
    "[MASK]ed e\u0301te\u0301 \U0001f600\U0001f468\u200d\U0001f469 caf\u00e9\u00a0x",
    "\u4f60\u597dabc\u3002 a/b C++ <b> $5 #1 -LRB- x_y",
    " \n\t",
]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as one:
        browser = one.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    """A classifier as a preset, and its SavedModel under two names."""
    folder = tmp_path_factory.mktemp("play")
    model = tiny_model(label_names=["bad", "good"])
    randomize(model)
    model.save_preset(folder / "preset")
    model.export_savedmodel(folder / "teacher", gradients=True)
    model.head.label_names = ["good", "bad"]
    model.export_savedmodel(folder / "contrary")
    (folder / "student").symlink_to("teacher")
    return folder / "preset"


@pytest.fixture(scope="module")
def url(preset):
    models = [str(preset.parent / name) for name in ("teacher", "student")]
    with running(ServeConfig(models, port=0, batch_timeout_ms=0), page=True) as url:
        yield url


@contextlib.contextmanager
def opened(browser, url, **options):
    """The page, which must not log an error but those of requests that are refused."""
    errors = []

    def note(message):
        if message.type == "error" and "Failed to load resource" not in message.text:
            errors.append(message.text)

    with contextlib.closing(browser.new_context(**options)) as context:
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", note)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{url}/")
        page.wait_for_selector(".time:has-text('server')")
        yield page
    assert errors == []


def settle(page):
    """Waits until each model has answered what is typed."""
    page.wait_for_timeout(350)  # the pause after a key
    page.wait_for_selector("#models:not(:has([aria-busy]))")


def fill(page, name, text):
    page.fill(f"#field-{name}", text)
    settle(page)


def test_one_types_and_two_models_answer(browser, url, preset):
    ask = asking(preset.parent / "teacher")
    with opened(browser, url, viewport={"width": 1000, "height": 800}) as page:
        assert page.title() == "Play with teacher and student"
        place = page.locator("#curls").bounding_box()
        for text in ("a bad, dull film", "warm", HOSTILE):
            fill(page, "text", text)
            (row,) = ask([text])
            shares = [f"{100 * score:.1f} %" for score in row["scores"]]
            assert page.locator(".said").all_inner_texts() == [row["label"]] * 2
            assert page.locator(".bars .value").all_inner_texts() == shares * 2
            assert page.locator(".bars .name").all_inner_texts() == ["bad", "good"] * 2
        assert page.locator("#curls").bounding_box() == place  # nothing jumps
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 1
        assert page.title() == "Play with teacher and student"
        said = f"They agree: {row['label']}."
        assert page.inner_text("#agreement") == said
        assert page.inner_text("#live").endswith(said)
        check_curl(page, 'it\'s "good"\nand $HOME `x` \\ \U0001f600 !', ask)


def test_models_that_disagree_say_so(browser, preset):
    models = [str(preset.parent / name) for name in ("teacher", "contrary")]
    config = ServeConfig(models, port=0, batch_timeout_ms=0)
    with running(config, page=True) as url, opened(browser, url) as page:
        fill(page, "text", "a bad, dull film")
        first, second = page.locator(".said").all_inner_texts()
        assert {first, second} == {"bad", "good"}
        told = f"They disagree: teacher says {first}, contrary says {second}."
        assert page.inner_text("#agreement") == told
        assert page.get_attribute("#agreement", "class") == "other"
        # The second has no graph of gradients, and says how it gets one.
        page.click("#words")
        page.select_option("#by", "gradients")
        page.wait_for_selector(".model:last-child >> text=--gradients")
        assert page.locator(".model:first-child .ramp.against").count() == 1


def check_curl(page, text, ask):
    fill(page, "text", text)
    line = page.locator("pre").first.inner_text()
    done = subprocess.run(["bash", "-c", f"{line} -sS"], capture_output=True)
    (found,) = json.loads(done.stdout)["predictions"]
    assert found["scores"] == pytest.approx(ask([text])[0]["scores"], abs=1e-6)


def test_words_have_the_colours_of_explain_words(browser, url, preset):
    text = "A very dull film, isn't it?"
    explained = explain_words([preset], text)
    (found,) = explained["models"]
    with opened(browser, url) as page:
        fill(page, "text", text)
        page.click("#words")
        page.wait_for_selector(".model:last-child .coloured .word")
        words = page.locator(".model:last-child .coloured .word")
        assert words.all_inner_texts() == explained["words"]
        titles = words.evaluate_all("all => all.map(one => one.title)")
        pairs = zip(found["labels"], found["entropies"], strict=True)
        assert titles == [f"masked: {one}, {bits:.2f} bits" for one, bits in pairs]
        shares = words.evaluate_all(
            "all => all.map(one => Number(one.style.getPropertyValue('--share')))"
        )
        assert shares == pytest.approx(found["entropies"], abs=1e-4)
        turns = words.evaluate_all("all => all.map(one => one.matches('.turns'))")
        assert turns == [label != found["label"] for label in found["labels"]]
        check_gradients(page, preset.parent / "teacher", words)
        page.select_option("#by", "masks")
        fill(page, "text", HOSTILE)
        page.wait_for_selector(".model:last-child .coloured >> text=onerror")
        assert page.locator("img").count() == 0
        for text in AWKWARD:
            spans = page.evaluate(
                "text => import('/words.js').then(it => it.findWords(text)"
                ".map(([begin, end]) => text.slice(begin, end)))",
                text,
            )
            assert spans == [text[begin:end] for begin, end in find_words(text)], text


def check_gradients(page, path, words):
    """Colours are the sums over the tokens of each word."""
    text = "\U0001f600 Ca\u0308fe\u0301 films, unwatchable."
    fill(page, "text", text)
    page.select_option("#by", "gradients")
    page.wait_for_selector(".model:last-child .ramp.against")
    signature = tf.saved_model.load(str(path)).signatures["input_x_gradient"]
    found = {k: v.numpy()[0] for k, v in signature(tf.constant([text])).items()}
    owed = []
    for begin, end in find_words(text):
        begin, end = (len(text[:place].encode()) for place in (begin, end))
        inside = (begin <= found["begins"]) & (found["begins"] < end)
        owed.append(found["input_x_gradient"][inside].sum())
    most = max(map(abs, owed))
    assert len(owed) == words.count() and most > 0
    shares = words.evaluate_all(
        "all => all.map(one => Number(one.style.getPropertyValue('--share'))"
        " * (one.matches('.against') ? -1 : 1))"
    )
    assert shares == pytest.approx([one / most for one in owed], abs=1e-4)


def test_keys_errors_and_narrow_and_dark_screens(browser, url):
    narrow = {"width": 360, "height": 740}
    with opened(browser, url, viewport=narrow, color_scheme="dark") as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert sum(map(int, re.findall(r"\d+", back)[:3])) < 200
        focused = "document.activeElement"
        assert page.evaluate(f"{focused}.id") == "field-text"  # one types at once
        assert page.get_by_label("Text").count() == 1
        page.keyboard.press("Control+A")
        page.keyboard.type("x film")
        with page.expect_request("**/teacher:predict") as asked:
            page.keyboard.press("Enter")
        assert asked.value.post_data == '{"instances":["x film"]}'
        settle(page)
        for expected in ("ask", "words"):
            page.keyboard.press("Tab")
            assert page.evaluate(f"{focused}.id") == expected
            style = page.evaluate(f"getComputedStyle({focused}).outlineStyle")
            assert style == "solid"
        page.keyboard.press("Space")
        assert page.get_attribute("#words", "aria-pressed") == "true"
        page.wait_for_selector(".model:last-child .coloured .word")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        fill(page, "text", "")
        assert page.inner_text("#problem") == "Type a text."
        page.evaluate(
            "() => { const text = document.querySelector('textarea');"
            "text.value = 'a \\ud83d'; text.dispatchEvent(new Event('input')); }"
        )
        page.wait_for_selector(".model:last-child .error:visible")
        refused = page.locator(".model .error:visible").all_inner_texts()
        assert len(refused) == 2 and "half a surrogate pair" in refused[0]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """Path of the SavedModel of a model that answers questions, letter by letter."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.ascii_lowercase]
    pieces += [f"##{letter}" for letter in string.ascii_lowercase]
    model = tiny_model(task="question_answering", vocabulary=pieces)
    randomize(model)
    path = tmp_path_factory.mktemp("play") / "reader"
    model.export_savedmodel(path, fields=("question", "context"))
    return path


def test_an_answer_is_marked_in_its_context(browser, reader):
    with (
        running(ServeConfig([str(reader)], port=0, poll_seconds=60), page=True) as url,
        opened(browser, url) as page,
    ):
        for context in (
            "\U0001f600 the caf\u00e9 \U0001f468\u200d\U0001f469 e\u0301te\u0301",
            "\u4f60\u597d\U0001f600 \u0915\u0941 zebra o\u0308 \U0001f600",
        ):
            fill(page, "question", "where?")
            fill(page, "context", context)
            asked = {"instances": [{"question": "where?", "context": context}]}
            answer = httpx.post(f"{url}/v1/models/reader:predict", json=asked)
            (found,) = answer.json()["predictions"]
            answers = found["best_answers"]
            assert page.locator("mark").text_content() == answers[0]
            assert page.locator(".marked").text_content() == context
            shown = page.locator(".bars .name").all_text_contents()
            assert shown == [one for one in answers if one][:4]
            share = f"{100 * found['score']:.1f} %"
            assert page.inner_text(".sure") == share
        page.route("**/*:predict", lambda route: route.abort())
        page.focus("#field-question")
        page.keyboard.press("Enter")
        page.wait_for_selector(".model .error:visible")
        assert "recbert play" in page.inner_text(".model .error")
