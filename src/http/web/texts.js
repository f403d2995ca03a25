// The texts of the user interface in the language of the user. A table of translations has the
// English texts as keys, with {0}, {1}… for values, as in VS Code. Without a table, as in a browser,
// texts are English.

const table = new Map(Object.entries(JSON.parse(globalThis.document?.body?.dataset.texts || "{}")));
const ATTRIBUTES = ["title", "aria-label", "placeholder", "data-reading"];

/** Returns the translation of an English text, or the text itself. */
export const translated = (text) => table.get(text) ?? text;

/** Like `t`, for values that are nodes: returns a list of texts and values. */
export function withNodes(strings, ...values) {
  const key = strings.reduce((text, part, index) => `${text}{${index - 1}}${part}`);
  return translated(key).split(/\{(\d+)\}/).map((part, index) => (index % 2 === 0 ? part : part in values ? values[part] : `{${part}}`));
}

/**
 * Tags a text that users read, and returns its translation. The key of a text with values has their
 * numbers, for example "1 of {0}". Values are inserted as they are.
 */
export const t = (strings, ...values) => withNodes(strings, ...values).map(String).join("");

/** Tags a text that `translated` translates where it is shown, and returns it in English. */
export const english = ([text]) => text;

/** Translates the elements of index.html. Called once, before the page shows data. */
export function translatePage() {
  if (!table.size) return;
  for (const node of document.body.querySelectorAll("*")) {
    for (const name of ATTRIBUTES) if (node.hasAttribute(name)) node.setAttribute(name, translated(node.getAttribute(name)));
    for (const child of node.childNodes) {
      const text = child.nodeType === Node.TEXT_NODE ? child.data.trim() : "";
      if (text) child.data = child.data.replace(text, () => translated(text));
    }
  }
}
