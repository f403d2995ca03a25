"""What must hold with a real llama.cpp server and a small instruct model: `python3 scenarios.py
NUNCIO [SCENARIO]…`. The model's answers do not matter, only that they arrive; the server counts
what it evaluates."""

import signal
import subprocess
import sys
import time

from processes import (
    ANSWER,
    HERE,
    HOME,
    SETTINGS,
    WORK,
    Acp,
    Llama,
    answer,
    check,
    events,
    first_output,
    free_port,
    nuncio,
    of_type,
    port_is_free,
    settings,
    start_nuncio,
    wait,
)

# A port on which nuncio looks for llama.cpp.
DEFAULT_PORTS = [8080, 9931]
# What doctor says about the model's own template.
NO_TOOLS = "chat template has no tools"
WINDOW = 4096
PROMPTS = ["Say hello.", "Name a fruit.", "Name a city.", "Name a colour.", "Name an animal.", "Say goodbye."]
STORY = "Write a long story about a cat."
# The most prompt tokens that a later turn may evaluate: one of the same process, and one whose
# message has a note.
NEXT, LATER = 20, 40
FORMATS = ["openai-chat", "openai-responses", "anthropic"]


def evaluated(llama, action):
    """Returns the result of an action, and the tokens that the server evaluated and generated."""
    before = llama.counts()
    result = action()
    after = llama.counts()
    return result, after[0] - before[0], after[1] - before[1]


def detection(llama):
    """Without settings, the server at the default port is found, described and used."""
    check(llama.port in DEFAULT_PORTS, f"other processes use the ports {DEFAULT_PORTS}: nothing can be detected there")
    SETTINGS.unlink(missing_ok=True)
    code, out, err = nuncio("doctor")
    check(code == 0, f"nuncio doctor: exit code {code}, {out}{err}")
    for words in ["llamacpp/smollm2", f"http://127.0.0.1:{llama.port}", f"{WINDOW} tokens", NO_TOOLS]:
        check(words in out, f"nuncio doctor does not print {words!r}: {out}{err}")
    code, out, err = nuncio("run", PROMPTS[0])
    check(code == 0 and out.strip(), f"nuncio run: exit code {code}, {out!r}, {err}")
    for words in ["llamacpp/smollm2", f"http://127.0.0.1:{llama.port}", "cannot call tools"]:
        check(words in err, f"nuncio run does not print {words!r}: {err}")


def turns(llama):
    """Six turns of one process and one of a new process: later turns evaluate only what is new."""
    settings(llama.port)
    counts = []
    with Acp() as acp:
        for prompt in PROMPTS:
            result, *tokens = evaluated(llama, lambda prompt=prompt: acp.prompt(prompt))
            check(result.get("stopReason") == "end_turn" and acp.text, f"{prompt}: {result}, {acp.text!r}")
            counts.append(tokens)
    (size,) = {update["size"] for update in acp.updates if update["sessionUpdate"] == "usage_update"}
    _, *tokens = evaluated(llama, lambda: answer("--continue", "Name a tree."))
    counts.append(tokens)
    usage = [step["usage"] for step in of_type(events(acp.session), "step.completed")]
    reported = [[step["inputTokens"] - step["cacheReadTokens"], step["outputTokens"]] for step in usage]
    check(reported == counts, f"the usage differs from the server's counts: {reported}, {counts}")
    is_small = all(prompt <= NEXT for prompt, _ in counts[1:-1]) and counts[-1][0] <= LATER
    check(is_small, f"evaluated and generated tokens of each turn: {counts}")
    check(size == WINDOW, f"the context window is reported as {size}")
    return f"evaluated {[prompt for prompt, _ in counts]}"


def formats(llama):
    """Chat, Responses and Anthropic give the same texts and counts, and all use the cache."""
    settings(llama.port)
    # Each format continues the same conversation. The first one is repeated, so that all find the
    # same cache.
    with Acp() as acp:
        acp.prompt(PROMPTS[0])
    first, results = acp.session, []
    for protocol in [FORMATS[0], *FORMATS]:
        settings(llama.port, protocol)
        with Acp(fork=first) as acp:
            turns = []
            for prompt in PROMPTS[1:4]:
                result, *tokens = evaluated(llama, lambda prompt=prompt: acp.prompt(prompt))
                turns.append((acp.text, result.get("stopReason"), tokens))
        usage = [step["usage"] for step in of_type(events(acp.session), "step.completed")]
        results.append((turns, usage))
    del results[0]
    for protocol, result in zip(FORMATS[1:], results[1:]):
        check(result == results[0], f"{protocol} differs from {FORMATS[0]}: {result}, {results[0]}")
    turns = results[0][0]
    check(all(text and stop == "end_turn" and tokens[0] <= LATER for text, stop, tokens in turns), turns)
    return f"evaluated {[tokens[0] for _, _, tokens in turns]} in each"


def cancel(llama):
    """A cancel and an interrupt free the server's slot."""
    settings(llama.port, answer_tokens=200)
    with Acp() as acp:
        result = acp.prompt(STORY, acp.cancel)
        start = time.monotonic()
        check(result.get("stopReason") == "cancelled", f"session/cancel: {result}")
        wait(lambda: not llama.busy(), 10, "the slot is free after session/cancel")
        acp_time = time.monotonic() - start
        check(acp.prompt(PROMPTS[0], seconds=ANSWER).get("stopReason"), "a prompt after the cancel")
    process = start_nuncio("run", STORY)
    first_output(process)
    check(llama.busy(), "the server is idle during the answer")
    process.send_signal(signal.SIGINT)
    start = time.monotonic()
    code = process.wait(timeout=10)
    check(code == 130, f"nuncio run: exit code {code} after SIGINT")
    wait(lambda: not llama.busy(), 10, "the slot is free after SIGINT")
    return f"free after {acp_time * 1000:.0f} ms, {(time.monotonic() - start) * 1000:.0f} ms"


def overflow(llama):
    """A prompt beyond the window fails with both numbers; the session stays usable."""
    settings(llama.port)
    long = "word " * (WINDOW + 1000)
    with Acp() as acp:
        acp.prompt(PROMPTS[0])
        error = acp.prompt(long).get("error")
        check(error, "the prompt is larger than the window and was answered")
        info = error["data"].get("info", {})
        check(info.get("cause") == "context_overflow", f"the cause of the overflow: {error}")
        check(info.get("requestTokens", 0) > WINDOW and info.get("contextWindow") == WINDOW, f"the numbers of the overflow: {info}")
        check("shorten the prompt" in error["data"].get("hint", ""), f"the hint of the overflow: {error}")
        counts = [evaluated(llama, lambda: check(acp.prompt(PROMPTS[1]).get("stopReason"), "the next prompt failed"))[1]]
    counts.append(evaluated(llama, lambda: answer("--resume", acp.session, PROMPTS[2]))[1])
    code, _, err = nuncio("run", "--resume", acp.session, "-", stdin=long)
    check(code == 1 and str(WINDOW) in err and "shorten the prompt" in err, f"nuncio run: exit code {code}, {err}")
    counts.append(evaluated(llama, lambda: answer("--resume", acp.session, PROMPTS[3]))[1])
    # The first turn after an overflow contains a note about it.
    check(max(counts) <= 2 * LATER, f"evaluated after the overflow: {counts}")
    return f"evaluated {counts} after it"


def full(llama):
    """The turns fill the window: the conversation is compacted, or a prompt is rejected; no two
    prompts in a row are rejected."""
    settings(llama.port)
    ends, window = "", llama.settings["n_ctx"]
    with Acp() as acp:
        while ends.count("+") < 5:
            result = acp.prompt(f"Number {len(ends)}. {'word ' * 150}Which number was this?")
            info = result.get("error", {}).get("data", {}).get("info", {})
            check("stopReason" in result or info.get("contextWindow") == window, f"prompt {len(ends)}: {result}")
            ends += "+" if "stopReason" in result else "-"
            check(not ends.endswith("--"), f"answered (+) and rejected (-) prompts: {ends}")
    compactions = [end["outcome"] for end in of_type(events(acp.session), "compaction.completed")]
    check("-" in ends or "completed" in compactions, f"the window was never full: {ends}, {compactions}")
    return f"answered and rejected: {ends}, compactions: {compactions}"


def restart(llama):
    """The server is killed during an answer and started again: the turn completes, once."""
    settings(llama.port, answer_tokens=100)
    shown = []

    def kill(text):
        if len(text) > 40 and not shown:
            shown.append(text)
            llama.kill()
            llama.start(ready=False)

    start = time.monotonic()
    with Acp() as acp:
        result = acp.prompt(STORY, kill, seconds=2 * ANSWER)
        seconds = time.monotonic() - start
        check(result.get("stopReason") in ("end_turn", "max_tokens"), f"the turn: {result}")
        _, later, _ = evaluated(llama, lambda: acp.prompt(PROMPTS[0]))
    bodies = events(acp.session)
    messages = [body for body in of_type(bodies, "message.completed") if body["role"] == "assistant"]
    texts = [body["parts"][0]["text"] for body in messages]
    discarded = [text for text, body in zip(texts, messages) if body.get("discarded")]
    check(discarded == shown, f"the discarded text: {discarded}, shown: {shown}")
    check(len(texts) == 3, f"the messages: {texts}")
    steps = of_type(bodies, "step.completed")
    check(steps[0]["outcome"] == "retried", f"the first request: {steps[0]}")
    # With the text of both attempts, the message would have more tokens than the server generated.
    tokens, generated = llama.tokens(texts[1]), steps[-2]["usage"]["outputTokens"]
    check(abs(tokens - generated) <= 3, f"{tokens} tokens, of which the server generated {generated}: {texts[1]}")
    check(later <= LATER, f"the turn after the restart evaluates {later} tokens")
    return f"{seconds:.1f} s, {len(steps) - 2} attempts failed"


def gone(llama):
    """The server is killed during an answer and stays away: exit code 3 and a clear message."""
    settings(llama.port, answer_tokens=200)
    process = start_nuncio("run", STORY)
    first_output(process)
    llama.kill()
    start = time.monotonic()
    try:
        _, err = process.communicate(timeout=40)
    except subprocess.TimeoutExpired:
        raise AssertionError("nuncio run did not end within 40 s without its server") from None
    seconds = time.monotonic() - start
    for code, err in [(process.returncode, err), nuncio("run", PROMPTS[0], seconds=15)[::2]]:
        check(code == 3, f"nuncio run: exit code {code}, {err}")
        check("refused" in err and "is the server running?" in err, f"nuncio run: {err}")
    return f"{seconds:.1f} s"


def tools(llama):
    """With a template for tools, a call runs and its result is answered, in each format."""
    settings(llama.port)
    code, out, err = nuncio("doctor")
    check(code == 0 and f"{WINDOW} tokens" in out and NO_TOOLS not in out, f"nuncio doctor: exit code {code}, {out}{err}")
    (WORK / "apple.txt").touch()
    counts = []
    for protocol in FORMATS:
        settings(llama.port, protocol, answer_tokens=48)
        with Acp() as acp:
            # A model of this size confuses tools.
            acp.call("_nuncio/session/configure", {"sessionId": acp.session, "tools": ["list"]})
            result, prompt, _ = evaluated(llama, lambda: acp.prompt("Which files are here?"))
        check(result.get("stopReason") == "end_turn", f"{protocol}: {result}")
        bodies = events(acp.session)
        check(not of_type(bodies, "notice"), f"{protocol}: {of_type(bodies, 'notice')}")
        calls = of_type(bodies, "tool.completed")
        check([call["name"] for call in calls] == ["list"], f"{protocol}: the calls: {calls}")
        check(calls[0]["status"] == "completed" and "apple.txt" in str(calls[0]["output"]), f"{protocol}: the result: {calls}")
        check("apple" in acp.text, f"{protocol}: the answer to the result: {acp.text!r}")
        usage = [step["usage"] for step in of_type(bodies, "step.completed")]
        counts.append([step["inputTokens"] - step["cacheReadTokens"] for step in usage])
        check(sum(counts[-1]) == prompt, f"{protocol}: the usage {counts[-1]} differs from the server's {prompt}")
    check(all(second <= LATER for _, second in counts), f"evaluated per request: {counts}")
    return f"evaluated {counts}"


# The scenarios, with the settings of their servers.
# Answers and summaries end before the limit of tokens.
SHORT = {"n_ctx": WINDOW, "grammar": 'root ::= [A-Z] [a-z ]{1,18} "."'}
SMALL = SHORT | {"n_ctx": 1536}
TOOLS = {"n_ctx": WINDOW, "chat_template": (HERE / "tools.jinja").read_text()}
SCENARIOS = {detection: SHORT, turns: SHORT, formats: SHORT, overflow: SHORT, full: SMALL, cancel: {}, restart: {}, gone: {}, tools: TOOLS}


def main():
    wanted = sys.argv[2:]
    # A bound for the whole, should a bound of a wait be missing.
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("not done within 15 minutes"))
    signal.alarm(900)
    port = next((port for port in DEFAULT_PORTS if port_is_free(port)), None) or free_port()
    server, llama = None, None
    passed = failed = 0
    for scenario, special in SCENARIOS.items():
        if wanted and scenario.__name__ not in wanted:
            continue
        start = time.monotonic()
        try:
            if llama is None or special != server:
                if llama:
                    llama.kill()
                server, llama = special, Llama(port, **({"n_ctx": WINDOW} | special))
            llama.restart()
            measured = scenario(llama)
        except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
            failed += 1
            print(f"FAILED  {scenario.__name__}: {error}", flush=True)
            log = (HOME / f"llama-{port}.log").read_text(errors="replace").splitlines()
            print("the server's log:", *log[-10:], sep="\n  ", flush=True)
            continue
        passed += 1
        print(f"ok      {scenario.__name__} ({time.monotonic() - start:.1f} s){': ' + measured if measured else ''}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
