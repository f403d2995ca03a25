-- Drives nuncio from headless Neovim the way its ACP plugins do, with the snippets of editors/nvim:
-- a turn reads, edits and creates files while one of them is open in a buffer; each write asks first,
-- and one file has a byte order mark, CRLF and no newline at its end.
-- `nvim --headless -u NONE -l neovim.lua NUNCIO`; exits with 1 and the reason when something does
-- not hold.
--
-- CODECOMPANION_NVIM, AVANTE_NVIM and AGENTIC_NVIM name checkouts of the plugins, PLENARY_NVIM and
-- NUI_NVIM those of the libraries that they need. Where one is missing, a client with the same file
-- handlers stands in for the plugin, and the output says so.

local here = vim.fs.dirname(vim.fs.normalize(vim.uv.fs_realpath(arg[0])))
local nuncio = vim.uv.fs_realpath(arg[1])
local temp = vim.uv.fs_realpath(vim.uv.fs_mkdtemp(vim.fs.joinpath(vim.uv.os_tmpdir(), "nuncio-nvim-XXXXXX")))

local function write(path, text)
  vim.fn.mkdir(vim.fs.dirname(path), "p")
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

local function read(path)
  local file, why = io.open(path, "r")
  if not file then
    return nil, why
  end
  local text = file:read("*all")
  file:close()
  return text
end

local function equal(actual, expected, what)
  if not vim.deep_equal(actual, expected) then
    error(("%s: %s, not %s"):format(what, vim.inspect(actual), vim.inspect(expected)), 2)
  end
end

vim.fn.mkdir(temp .. "/bin", "p")
assert(vim.uv.fs_symlink(nuncio, temp .. "/bin/nuncio"))
vim.env.PATH = temp .. "/bin:" .. vim.env.PATH
vim.env.NUNCIO_HOME = temp .. "/nuncio"
vim.env.NUNCIO_MODEL = "scripted:" .. here .. "/neovim.json"
vim.o.swapfile = false

-- What a client saw of a turn.
local function new_record()
  return { requests = {}, notices = {}, permissions = {} }
end

-- The id of the option that allows a call once.
local function allowed(options)
  return vim.iter(options):find(function(option) return option.kind == "allow_once" end).optionId
end

local function note(record, message)
  local params = message.params or {}
  if message.id and params.path then
    local name = vim.fs.basename(params.path)
    table.insert(record.requests, (message.method:gsub("^fs/(%a+)_text_file$", "%1 ")) .. name)
  elseif message.method == "session/request_permission" then
    table.insert(record.permissions, params.toolCall.title)
  elseif params.update and params.update.sessionUpdate == "notice" then
    table.insert(record.notices, params.update.title)
  end
end

-- A turn of a client of our own: `files.read(path)` returns the text or nil and an error,
-- `files.write(path, text)` the result, or nil for no answer. `environment` is all that nuncio gets,
-- if it is given.
local function turn(command, capabilities, files, environment)
  local record, answers, rest = new_record(), {}, ""
  local process
  local function send(message)
    message.jsonrpc = "2.0"
    process:write(vim.json.encode(message) .. "\n")
  end
  local function handle(message)
    note(record, message)
    if not message.method then
      answers[message.id] = message
    elseif message.method == "session/request_permission" then
      local outcome = { outcome = "selected", optionId = allowed(message.params.options) }
      send({ id = message.id, result = { outcome = outcome } })
    elseif message.method == "fs/read_text_file" then
      local text, why = files.read(message.params.path)
      local failed = { code = -32603, message = why }
      send(text and { id = message.id, result = { content = text } } or { id = message.id, error = failed })
    elseif message.method == "fs/write_text_file" then
      local result = files.write(message.params.path, message.params.content)
      if result then
        send({ id = message.id, result = result })
      end
    end
  end
  process = vim.system(command, {
    stdin = true,
    env = environment,
    clear_env = environment ~= nil,
    stdout = vim.schedule_wrap(function(_, data)
      local lines = vim.split(rest .. (data or ""), "\n", { plain = true })
      rest = table.remove(lines)
      vim.iter(lines):map(vim.json.decode):each(handle)
    end),
  })
  local function call(id, method, params)
    send({ id = id, method = method, params = params })
    assert(vim.wait(30000, function() return answers[id] ~= nil end, 5), method .. ": no answer")
    return assert(answers[id].result, vim.inspect(answers[id].error))
  end
  call(1, "initialize", { protocolVersion = 1, clientCapabilities = capabilities })
  local session = call(2, "session/new", { cwd = vim.fn.getcwd(), mcpServers = {} }).sessionId
  local prompt = { { type = "text", text = "Edit it." } }
  record.stop = call(3, "session/prompt", { sessionId = session, prompt = prompt }).stopReason
  process:write(nil)
  equal(process:wait(10000).code, 0, "the exit code at the end of the input")
  return record
end

-- The table that a snippet gives to the `setup` of a plugin that is not here.
local function snippet_of(plugin)
  local given
  package.loaded[plugin] = { setup = function(settings) given = settings end }
  dofile(here .. "/../../editors/nvim/" .. plugin .. ".lua")
  package.loaded[plugin] = nil
  return given
end

local function checkout(variable, ...)
  for _, name in ipairs({ variable, ... }) do
    if not vim.env[name] then
      io.stdout:write(("skipped: the real plugin (%s is not set); a client with its file handlers stands in\n"):format(name))
      return false
    end
    vim.opt.runtimepath:append(vim.env[name])
  end
  return true
end

-- CodeCompanion (acp/init.lua, interactions/chat/acp/fs.lua): reads the disk and writes open buffers.
local codecompanion = {}

function codecompanion.turn(capabilities)
  local adapter = snippet_of("codecompanion").adapters.acp.nuncio()
  return turn(adapter.commands.default, capabilities or adapter.parameters.clientCapabilities, {
    read = function(path)
      return read(path) or ""
    end,
    write = function(path, text)
      local buffer = vim.fn.bufnr(path)
      if buffer == -1 then
        write(path, text)
      else
        vim.api.nvim_buf_set_lines(buffer, 0, -1, true, vim.split(text, "\n", { plain = true }))
        vim.api.nvim_buf_call(buffer, function() vim.cmd("silent update!") end)
      end
      return vim.NIL
    end,
  })
end

function codecompanion.real_turn(capabilities)
  local adapter = require("codecompanion.adapters").resolve("nuncio")
  adapter.parameters.clientCapabilities = capabilities or adapter.parameters.clientCapabilities
  local connection = require("codecompanion.acp").new({ adapter = adapter })
  local record, handle = new_record(), connection.handle_incoming_request_or_notification
  connection.handle_incoming_request_or_notification = function(self, message)
    note(record, message)
    return handle(self, message)
  end
  assert(connection:connect_and_initialize(), "no session")
  local prompt = connection:session_prompt({ { role = "user", content = "Edit it.", _meta = {} } })
  prompt:on_permission_request(function(request) request.respond(allowed(request.options)) end)
  prompt:on_complete(function(stop) record.stop = stop end)
  prompt:on_error(function(why) record.stop = why end)
  prompt:send()
  assert(vim.wait(30000, function() return record.stop ~= nil end, 5), "the turn does not end")
  connection:disconnect()
  return record
end

-- Avante (llm.lua): reads buffers without the final newline, writes the disk and reloads the buffer.
local avante = {}

function avante.turn()
  local settings = snippet_of("avante")
  equal(settings.behaviour.auto_approve_tool_permissions, false, "whether Avante asks before a tool runs")
  local provider = settings.acp_providers[settings.provider]
  local command = vim.list_extend({ provider.command }, provider.args)
  return turn(command, { fs = { readTextFile = true, writeTextFile = true } }, {
    read = function(path)
      local buffer = vim.fn.bufnr(path)
      if buffer ~= -1 then
        return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")
      end
      return read(path)
    end,
    write = function(path, text)
      local file = io.open(path, "w")
      if not file then
        return "Failed to write file: " .. path
      end
      file:write(text)
      file:close()
      local buffer = vim.fn.bufnr(path)
      local reload = function()
        vim.cmd("edit")
      end
      -- Where the buffer is not saved, that fails, and there is no answer.
      if buffer == -1 or pcall(vim.api.nvim_buf_call, buffer, reload) then
        return vim.NIL
      end
    end,
  })
end

function avante.real_turn()
  equal(require("avante.config").behaviour.auto_approve_tool_permissions, false, "whether Avante asks before a tool runs")
  local Client, record, client = require("avante.libs.acp_client"), new_record(), nil
  local handle = Client._handle_notification
  Client._handle_notification = function(self, id, method, params)
    note(record, { id = id, method = method, params = params })
    return handle(self, id, method, params)
  end
  -- Avante asks with buttons in its sidebar; this one presses the first that allows.
  require("avante.config").behaviour.confirmation_ui_style = "inline_buttons"
  local sidebar = setmetatable({}, {
    __index = function() return function() end end,
    __newindex = function(_, name, value)
      if name == "permission_handler" and value then
        vim.schedule(function() value("allow_once") end)
      end
    end,
  })
  require("avante").get = function() return sidebar end
  local messages = { require("avante.history").Message:new("user", "Edit it.") }
  require("avante.llm")._stream_acp({
    history_messages = messages,
    get_history_messages = function() return messages end,
    on_messages_add = function() end,
    on_save_acp_client = function(made) client = made end,
    on_stop = function(stopped) record.stop = stopped.reason == "complete" and "end_turn" or vim.inspect(stopped) end,
    session_ctx = {},
  })
  assert(vim.wait(30000, function() return record.stop ~= nil end, 5), "the turn does not end")
  Client._handle_notification = handle
  client:stop()
  return record
end

-- agentic.nvim (acp/acp_client.lua, acp/acp_transport.lua): offers no files, and passes only PATH and
-- the snippet's variables.
local agentic = {}

function agentic.turn()
  local settings = snippet_of("agentic")
  local provider = settings.acp_providers[settings.provider]
  local command = vim.list_extend({ provider.command }, provider.args)
  local environment = vim.tbl_extend("force", { PATH = vim.env.PATH }, provider.env)
  return turn(command, { fs = { readTextFile = false, writeTextFile = false } }, {}, environment)
end

-- Versions before 2026-03 offer their files; here they are made to offer none, as newer ones do.
function agentic.real_turn()
  local Client, record, session = require("agentic.acp.acp_client"), new_record(), nil
  local config = require("agentic.config")
  local handle, request = Client._handle_notification, Client._send_request
  Client._handle_notification = function(self, id, method, params)
    note(record, { id = id, method = method, params = params })
    return handle(self, id, method, params)
  end
  Client._send_request = function(self, method, params, callback)
    if method == "initialize" then
      params.clientCapabilities.fs = { readTextFile = false, writeTextFile = false }
    end
    return request(self, method, params, callback)
  end
  local client = Client:new(config.acp_providers[config.provider], function() end)
  assert(vim.wait(30000, function() return client.state == "ready" end, 5), "no connection")
  client:create_session({
    on_session_update = function() end,
    on_error = function(why) record.stop = vim.inspect(why) end,
    on_request_permission = function(request, answer) answer(allowed(request.options)) end,
  }, function(result) session = assert(result).sessionId end)
  assert(vim.wait(30000, function() return session ~= nil end, 5), "no session")
  client:send_prompt(session, { { type = "text", text = "Edit it." } }, function(result, why)
    record.stop = result and result.stopReason or vim.inspect(why)
  end)
  assert(vim.wait(30000, function() return record.stop ~= nil end, 5), "the turn does not end")
  client:stop()
  return record
end

-- A turn with `open.txt` open in a buffer, with a line above it that is not saved if `typed`.
local function check(what, run, typed, expected)
  local work = ("%s/%s"):format(temp, (what:gsub("%W+", "-")))
  write(work .. "/open.txt", "one\ntwo\n")
  write(work .. "/bytes.txt", "\239\187\191caf\195\169\r\n\r\nhere")
  vim.cmd.cd(work)
  vim.cmd.edit("open.txt")
  if typed then
    vim.api.nvim_buf_set_lines(0, 0, 0, false, { "typed" })
  end
  local record = run()
  equal(record.stop, "end_turn", what .. ": the stop reason")
  equal(read("open.txt"), expected.disk, what .. ": open.txt")
  equal(read("below/new.txt"), "new\n", what .. ": below/new.txt")
  equal(read("bytes.txt"), "\239\187\191caf\195\169\r\n\r\nthere", what .. ": bytes.txt")
  local asked = { "Edit open.txt", "Write below/new.txt", "Edit open.txt", "Edit bytes.txt" }
  equal(record.permissions, expected.permissions or asked, what .. ": the permission requests")
  equal(vim.api.nvim_buf_get_lines(0, 0, -1, false), expected.buffer, what .. ": the buffer")
  equal(record.requests, expected.requests, what .. ": the requests to the client")
  equal(record.notices, expected.notices or {}, what .. ": the notices")
  vim.cmd("bwipeout!")
end

local function cases()
  local run, real = codecompanion.turn, checkout("CODECOMPANION_NVIM", "PLENARY_NVIM")
  if real then
    run = codecompanion.real_turn
    dofile(here .. "/../../editors/nvim/codecompanion.lua")
  end
  check("codecompanion with unsaved lines", run, true, { disk = "1\n2\n", buffer = { "typed", "one", "two" }, requests = {} })
  local files = { fs = { readTextFile = true, writeTextFile = true }, session = { notices = vim.empty_dict() } }
  check("codecompanion that offers its files", function() return run(files) end, false, {
    disk = "1\n2\n",
    buffer = { "1", "two", "" },
    -- The permission request shows the change, so it reads the file as well.
    requests = { "read open.txt", "read open.txt", "read open.txt", "write open.txt", "read open.txt" },
    notices = { "The client's files are not used" },
  })

  run, real = avante.turn, checkout("AVANTE_NVIM", "PLENARY_NVIM", "NUI_NVIM")
  if real then
    run = avante.real_turn
    dofile(here .. "/../../editors/nvim/avante.lua")
  end
  local edit = { "read open.txt", "read open.txt", "write open.txt", "read open.txt" }
  check("avante", run, false, {
    disk = "1\n2\n",
    buffer = { "1", "2" },
    -- nuncio itself writes the new file, and the file with CRLF.
    requests = vim.iter({ "read open.txt", edit, edit, "read bytes.txt", "read bytes.txt" })
      :flatten()
      :totable(),
  })
  check("avante with unsaved lines", run, true, {
    disk = "typed\n1\n2\n",
    buffer = { "typed", "one", "two" },
    requests = { "read open.txt", "read open.txt", "read open.txt", "write open.txt" },
  })

  run, real = agentic.turn, checkout("AGENTIC_NVIM")
  if real then
    run = agentic.real_turn
    dofile(here .. "/../../editors/nvim/agentic.lua")
  end
  check("agentic with unsaved lines", run, true, { disk = "1\n2\n", buffer = { "typed", "one", "two" }, requests = {} })
end

local ok, why = xpcall(cases, debug.traceback)
vim.fn.delete(temp, "rf")
if not ok then
  io.stderr:write(why, "\n")
end
vim.cmd.cquit({ count = ok and 0 or 1 })
