// The facts of an error of a JSON-RPC call.

import assert from "node:assert/strict";
import { test } from "node:test";
import { errorFacts } from "../../../editors/vscode/src/answers.ts";

const CASES = [
  [{ message: "no (try)", data: { code: "invalid_params", hint: "try", details: "no (try)" } }, { code: "invalid_params", message: "no", hint: "try" }],
  [{ message: "no (try)", data: { hint: "try" } }, { message: "no", hint: "try" }],
  [{ message: "no (yes)", data: { hint: "try" } }, { message: "no (yes)", hint: "try" }],
  [{ message: "no (yes)" }, { message: "no (yes)" }],
  [{ data: { info: { cause: "quota" } } }, { message: "unknown error", details: { cause: "quota" } }],
  ["the pipe is closed", { message: "the pipe is closed" }],
];

for (const [error, facts] of CASES) {
  test(JSON.stringify(error), () => assert.deepEqual(JSON.parse(JSON.stringify(errorFacts(error))), facts));
}
