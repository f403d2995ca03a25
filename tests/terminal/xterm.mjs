// Replays recordings through xterm.js, the terminal of VS Code. Each line of the input is a JSON
// object with `rows`, `columns` and `parts`; a part is `bytes` in Base64, a new size as `rows` and
// `columns`, or a `snapshot`. For each line of the input, prints a JSON array: for each snapshot
// and for the end, `above` (the lines of the scrollback) and `screen`. Wrapped rows are one line.
import { createInterface } from 'node:readline'

import xterm from '@xterm/headless'

// Cells that were never written are no text: a wide character that does not fit leaves one at the
// end of a row, and xterm.js leaves the line of the cursor as it is when the terminal gets wider.
// Those before the text count, because no line is indented by the cursor.
function text(rows) {
  let text = ''
  for (const row of rows)
    for (let column = 0; column < row.length; column++) {
      const cell = row.getCell(column)
      if (cell.getChars() !== '') text += cell.getChars()
      else if (cell.getWidth() > 0 && text.trim() === '') text += ' '
    }
  return text.trimEnd()
}

function lines(buffer, from, to) {
  const lines = []
  for (let number = from; number < to; number++) {
    const row = buffer.getLine(number)
    if (row.isWrapped && number > from) lines.at(-1).push(row)
    else lines.push([row])
  }
  return lines.map(text)
}

function shown(terminal) {
  const buffer = terminal.buffer.active
  // A line that begins in the scrollback belongs to it.
  let top = buffer.baseY
  while (top < buffer.length && buffer.getLine(top).isWrapped) top++
  return { above: lines(buffer, 0, top), screen: lines(buffer, top, buffer.length) }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { rows, columns, parts } = JSON.parse(line)
  const terminal = new xterm.Terminal({ rows, cols: columns, scrollback: 100_000, allowProposedApi: true })
  const states = []
  for (const part of parts) {
    if (part.bytes !== undefined) await new Promise((done) => terminal.write(Buffer.from(part.bytes, 'base64'), done))
    else if (part.snapshot) states.push(shown(terminal))
    else terminal.resize(part.columns, part.rows)
  }
  states.push(shown(terminal))
  process.stdout.write(`${JSON.stringify(states)}\n`)
  terminal.dispose()
}
