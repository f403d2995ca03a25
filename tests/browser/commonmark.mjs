// Cases about Markdown: the examples of CommonMark 0.31.2 through the console's renderer, compared
// as trees, and hostile texts.

import { createRequire } from "node:module";
import MarkdownIt from "../../src/http/web/vendor/markdown-it.js";
import { equal, ok } from "./harness.mjs";

const { tests } = createRequire(import.meta.url)("commonmark-spec");
const WITHOUT_HTML = 580;
const SAME_MIN = 565;
/** A text below this time is drawn fast enough, whatever twice the text takes. */
const FAST_MS = 100;
const RATIO_MAX = 2.5;

/** Runs in a page: returns the tree of an element as text, with the console's elements as CommonMark's. */
function treeOf(root) {
  const inline = new Set(["A", "BR", "CODE", "EM", "STRONG", "IMG", "SPAN", "KBD", "SUB", "SUP"]);
  const spaces = (text) => text.replace(/[ \t\n]+/g, " ");
  // The console's places are paths, not addresses.
  const decoded = (address) => {
    try {
      return decodeURIComponent(address);
    } catch {
      return address;
    }
  };
  const tree = (node) => {
    if (node.nodeType === 3) return spaces(node.data);
    if (node.nodeType !== 1) return "";
    if (node.classList.contains("code")) return `<pre ${node.querySelector(".language")?.textContent ?? ""}>${node.querySelector("pre").textContent}</pre>`;
    if (node.tagName === "PRE") return `<pre ${/language-(\S+)/.exec(node.firstChild.className)?.[1].slice(0, 24) ?? ""}>${node.textContent.replace(/\n$/, "")}</pre>`;
    if (node.tagName === "CODE") return `<code>${node.textContent}</code>`;
    const isPath = node.dataset.path !== undefined || !/^https?:/i.test(node.getAttribute("href") ?? node.getAttribute("src") ?? "");
    const address = isPath ? node.dataset.path ?? decoded(node.getAttribute("href") ?? node.getAttribute("src")) : new URL(node.getAttribute("href") ?? node.getAttribute("src")).href;
    const isOurs = node.dataset.path !== undefined || node.target === "_blank";
    const title = isOurs ? node.title.split("\n").slice(0, -1).join("\n") : node.title;
    if (node.tagName === "IMG" || node.classList.contains("image")) return `<img ${address} ${title}>${node.alt ?? node.textContent}</img>`;
    const name = /^H[1-6]$/.test(node.tagName) ? /^h\d$/.test(node.className) ? node.className : node.tagName.toLowerCase() : node.tagName.toLowerCase();
    const facts = node.tagName === "A" ? ` ${address} ${title}` : node.tagName === "OL" ? ` ${node.start}` : "";
    return `<${name}${facts}>${children(node)}</${name}>`;
  };
  const children = (node) => {
    const nodes = [...node.childNodes].filter((one) => one.nodeType !== 3 || one.data !== "");
    const isInline = (one) => !!one && (one.nodeType === 3 ? one.data.trim() !== "" : inline.has(one.tagName));
    const parts = nodes.map((one, index) => {
      if (one.nodeType !== 3) return tree(one);
      const text = spaces(one.data);
      return (isInline(nodes[index - 1]) ? text : text.trimStart()).replace(/ $/, isInline(nodes[index + 1]) ? " " : "");
    });
    return parts.join("").replace(/ ?(<br><\/br>) ?/g, "$1");
  };
  return children(root);
}

const HOSTILE = {
  stars: "*a ", strong: "**a ", "nested emphasis": "*a **a ", closers: "a** ", underscores: "_a __b ", tildes: "~~a ", brackets: "[", "link starts": "[a](b", "image starts": "![a](b", "nested images": "![", pairs: "[]", "address starts": "[a](<b",
  references: "[a]: /u\n", titles: "[a](b 'x ", backticks: "`a ``b ", less: "<", comments: "<!-- ", tags: "<kbd>", "closed tags": "<kbd>a</kbd>", details: "<details>\n\n", summaries: "<summary></summary> ", entities: "&", hidden: "&#8238;",
  quotes: ">", lists: "- ", items: "- a\n", cells: "|a", rows: "a|\n", hashes: "#", "line ends": " \n", addresses: "http://", "long address": "a.http://a(", autolinks: "<http://a", backslashes: "\\", fences: "```\n~~~\n", lines: "a\n", indented: "    a\n\n", "lazy quotes": "> a\nb\n", tabs: "\t", at: "a@", colons: "a:",
};

/** Returns whether markdown-it finds HTML in an example. */
function hasHtml({ markdown }) {
  const all = new MarkdownIt("commonmark").parse(markdown, {});
  return all.some(({ type, children }) => type === "html_block" || children?.some((one) => one.type === "html_inline"));
}

export const commonmark = (browser, server) => ({
  async "the examples of CommonMark are drawn as it says"() {
    const page = await browser.open(server), other = await browser.page();
    const examples = tests.map((test) => ({ ...test, markdown: test.markdown.replaceAll("→", "\t"), html: test.html.replaceAll("→", "\t") }));
    // The other page has no policy, which refuses to parse HTML.
    await other.evaluate("window.violations = []");
    for (const one of [page, other]) await one.evaluate(`window.treeOf = ${treeOf}`);
    const drawn = await page.evaluate(async (examples) => {
      const { Growing } = await import("/console/markdown.js");
      return examples.map(({ markdown }) => {
        const growing = new Growing();
        growing.update(markdown, true);
        const attributes = [...growing.root.querySelectorAll("a, .language")].map((node) => `${node.title} ${node.dataset.path ?? ""}`);
        return { tree: window.treeOf(growing.root), text: [growing.root.textContent, ...attributes].join(" ") };
      });
    }, examples);
    const wanted = await other.evaluate((examples) => examples.map(({ html }) => window.treeOf(new DOMParser().parseFromString(html, "text/html").body)), examples);
    const [html, plain] = [examples, examples].map((all, group) => all.map((one, index) => ({ ...one, ...drawn[index], wanted: wanted[index] })).filter((one) => hasHtml(one) === (group === 0)));
    const different = plain.filter((one) => one.tree !== one.wanted);
    if (process.env.SHOW) for (const one of different) console.log(`${one.number} ${one.section}\n  ${JSON.stringify(one.markdown)}\n  ${one.tree}\n  ${one.wanted}`);
    console.log(`      ${plain.length - different.length} of ${plain.length} examples without HTML are the same`);
    equal(plain.length, WITHOUT_HTML, "examples without HTML");
    ok(plain.length - different.length >= SAME_MIN, `other trees: ${different.map(({ number }) => number)}`);
    // Entities are drawn as their characters, and labels of references are not drawn.
    const words = (text) => text.replace(/&\w+;|^\[[^\]]*\](?=:)|\]\[[^\]]*\]/gm, " ").match(/[\p{L}\p{N}]+/gu) ?? [];
    const lost = html.flatMap(({ number, markdown, text }) => words(markdown).filter((word) => !text.includes(word)).map((word) => `${number}: ${word}`));
    equal(lost, [], "lost words of examples with HTML");
  },

  async "twice the hostile text takes at most 2.5 times as long"() {
    const page = await browser.open(server);
    const slow = await page.evaluate(async ([texts, fastMs, ratioMax]) => {
      const { Growing } = await import("/console/markdown.js");
      const time = (text) => {
        const started = performance.now();
        new Growing().update(text, true);
        return performance.now() - started;
      };
      const found = [];
      for (const [name, part] of Object.entries(texts)) {
        const [one, two] = [20_000, 40_000].map((length) => Math.min(...[1, 2, 3, 4, 5].map(() => time(part.repeat(length / part.length)))));
        if (two > fastMs && two > ratioMax * one) found.push(`${name}: ${Math.round(one)} ms, twice: ${Math.round(two)} ms`);
      }
      return found;
    }, [HOSTILE, FAST_MS, RATIO_MAX]);
    equal(slow, [], "what took long");
  },

  async "a growing text is drawn as the whole text"() {
    const page = await browser.open(server);
    const texts = [
      "1. Create `app.py`:\n\n   ```python\n   import os\n\n\n   def main():\n       pass\n   ```\n\n2. Run it:\n\n   - first\n   - second\n\nThe end with [a link][1] and *words*.\n\n[1]: https://example.org/\n",
      "A line\r\n\r\n# Heading\r\rText\r\n---\n\n<details>\n<summary>More *text*</summary>\n\nInner\n\n- list\n\n</details>\n\nAfter <kbd>Ctrl</kbd>+<kbd>C</kbd><br>next <sub>a</sub> </kbd> <kbd>open\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n\n<details>\n\nnever closed\n",
    ];
    const drawn = await page.evaluate(async (texts) => {
      const { Growing } = await import("/console/markdown.js");
      const shape = (node) => (node.nodeType === 3 ? node.data : `<${node.localName}>${[...node.childNodes].map(shape).join("")}</>`);
      const trees = [];
      for (const text of texts) {
        const [whole, growing] = [new Growing(), new Growing()];
        whole.update(text, true);
        for (let end = 0; end <= text.length; end++) growing.update(text.slice(0, end), false);
        growing.update(text, true);
        trees.push([shape(growing.root) === shape(whole.root), whole.root.textContent, [...whole.root.querySelectorAll("ol, details, kbd, sub, summary em")].map((node) => node.localName)]);
      }
      return trees;
    }, texts);
    equal(drawn.map(([same]) => same), [true, true], "the same");
    equal(drawn.map(([, , names]) => names), [["ol"], ["details", "em", "kbd", "kbd", "sub"]], "elements");
    ok(drawn[0][1].includes("import os\n\n\ndef main") && drawn[0][1].includes("The end with a link and words."), drawn[0][1]);
    ok(drawn[1][1].includes("next a </kbd> <kbd>open") && drawn[1][1].includes("<details>never closed"), drawn[1][1]);
  },
});
