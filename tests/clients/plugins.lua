-- Drives nuncio with the ACP clients of real Neovim plugins: mode, cancel, list, load in a second
-- process, and a prompt there. neovim.lua has prompts, permission requests and edits.
-- `nvim --headless -u NONE -l plugins.lua NUNCIO`; exits with 1 and the reason when something does
-- not hold. CODECOMPANION_NVIM, AVANTE_NVIM and AGENTIC_NVIM name checkouts of the plugins,
-- PLENARY_NVIM and NUI_NVIM those of the libraries that they need; a plugin without one is skipped.

local here = vim.fs.dirname(vim.fs.normalize(vim.uv.fs_realpath(arg[0])))
local nuncio = vim.uv.fs_realpath(arg[1])
local temp = vim.uv.fs_realpath(vim.uv.fs_mkdtemp(vim.fs.joinpath(vim.uv.os_tmpdir(), "nuncio-plugins-XXXXXX")))
vim.fn.mkdir(temp .. "/bin", "p")
assert(vim.uv.fs_symlink(nuncio, temp .. "/bin/nuncio"))
vim.env.PATH = temp .. "/bin:" .. vim.env.PATH
vim.env.NUNCIO_MODEL = "scripted:" .. here .. "/plugins.json"
vim.cmd.cd(temp)

-- The updates of all sessions, of which a plugin hands `note` each message that it receives.
local seen

local function note(message)
  if message.result and message.result.stopReason then
    seen.stop = message.result.stopReason
  end
  local update = message.params and message.params.update
  if update and update.content and update.content.text then
    local kind = update.sessionUpdate
    seen[kind] = (seen[kind] or "") .. update.content.text
  elseif update and update.sessionUpdate == "config_option_update" then
    seen.options = update.configOptions
  end
end

local function wait(what, condition)
  assert(vim.wait(30000, condition, 5), "no " .. what)
end

-- Each client: `connect()`, then with the connection `new_session()` returns the id, and the other
-- functions do what their names say. `list` is absent where the plugin has no list of sessions.
local clients = {}

local function codecompanion()
  dofile(here .. "/../../editors/nvim/codecompanion.lua")
  local adapter = require("codecompanion.adapters").resolve("nuncio")
  local function prompt(connection, words)
    local made = connection:session_prompt({ { role = "user", content = words, _meta = {} } })
    made:on_message_chunk(function() end):on_complete(function() end):send()
    return made
  end
  return {
    connect = function()
      local connection = require("codecompanion.acp").new({ adapter = adapter })
      local handle = connection.handle_rpc_message
      connection.handle_rpc_message = function(self, line)
        local ok, message = pcall(vim.json.decode, line)
        if ok then
          note(message)
        end
        return handle(self, line)
      end
      assert(connection:connect_and_authenticate(), "no connection")
      return connection
    end,
    new_session = function(connection)
      assert(connection:ensure_session(), "no session")
      return connection.session_id
    end,
    set_mode = function(connection, mode) assert(connection:set_config_option("mode", mode), "no mode") end,
    prompt = function(connection, _, words) connection.made = prompt(connection, words) end,
    cancel = function(connection) connection.made:cancel() end,
    list = function(connection)
      return vim.iter(connection:session_list()):map(function(session) return session.sessionId end):totable()
    end,
    load = function(connection, session) assert(connection:load_session(session), "not loaded") end,
    close = function(connection) connection:disconnect() end,
  }
end

-- The clients of Avante and of agentic.nvim have the same origin.
local function forked(client, connect, new_session, load)
  return {
    connect = function()
      local connection = connect()
      local handle = connection._handle_message
      connection._handle_message = function(self, message)
        note(message)
        return handle(self, message)
      end
      wait("connection", function() return connection.state == "ready" end)
      return connection
    end,
    new_session = function(connection)
      local session
      new_session(connection, function(result) session = result and (result.sessionId or result) end)
      wait("session", function() return session ~= nil end)
      return session
    end,
    set_mode = client.set_config_option and function(connection, mode, session)
      local done
      connection:set_config_option(session, "mode", mode, function(_, why) done = why or true end)
      wait("mode", function() return done == true end)
    end,
    prompt = function(connection, session, words)
      connection:send_prompt(session, { { type = "text", text = words } }, function() end)
    end,
    cancel = function(connection, session) connection:cancel_session(session) end,
    load = load,
    close = function(connection) connection:stop() end,
  }
end

local function avante()
  dofile(here .. "/../../editors/nvim/avante.lua")
  local client = require("avante.libs.acp_client")
  local function connect()
    local settings = require("avante.config")
    local made = client:new(settings.acp_providers[settings.provider])
    made:connect(function() end)
    return made
  end
  return forked(client, connect, function(connection, done)
    connection:create_session(temp, {}, done)
  end, function(connection, session)
    local loaded
    connection:load_session(session, temp, {}, function(result, why) loaded = result and true or vim.inspect(why) end)
    wait("load", function() return loaded == true end)
  end)
end

local function agentic()
  dofile(here .. "/../../editors/nvim/agentic.lua")
  local client = require("agentic.acp.acp_client")
  local handlers = { on_session_update = function() end, on_error = function() end }
  local function connect()
    local settings = require("agentic.config")
    return client:new(settings.acp_providers[settings.provider], function() end)
  end
  return forked(client, connect, function(connection, done)
    connection:create_session(handlers, done)
  end, function(connection, session)
    connection:load_session(session, temp, {}, handlers)
    wait("load", function() return seen.user_message_chunk ~= nil and seen.agent_message_chunk ~= nil end)
  end)
end

local function check(name, client)
  vim.env.NUNCIO_HOME = temp .. "/" .. name
  seen = {}
  local connection = client.connect()
  local session = client.new_session(connection)
  if client.set_mode then
    client.set_mode(connection, "plan", session)
  end
  client.prompt(connection, session, "Talk.")
  wait("first words", function() return seen.agent_message_chunk ~= nil end)
  client.cancel(connection, session)
  wait("end of the turn", function() return seen.stop ~= nil end)
  assert(seen.stop == "cancelled", seen.stop)
  client.close(connection)

  seen = {}
  connection = client.connect()
  if client.list then
    assert(vim.deep_equal(client.list(connection), { session }), "another list of sessions")
  end
  client.load(connection, session)
  assert(seen.user_message_chunk == "Talk.", vim.inspect(seen))
  seen = {}
  client.prompt(connection, session, "Do you remember?")
  wait("end of the turn", function() return seen.stop ~= nil end)
  assert(seen.stop == "end_turn", seen.stop)
  client.close(connection)
  io.stdout:write(("ok: %s, mode %s, list %s\n"):format(name, client.set_mode ~= nil, client.list ~= nil))
end

local function all()
  local plugins = {
    { "codecompanion", codecompanion, { "CODECOMPANION_NVIM", "PLENARY_NVIM" } },
    { "avante", avante, { "AVANTE_NVIM", "PLENARY_NVIM", "NUI_NVIM" } },
    { "agentic", agentic, { "AGENTIC_NVIM" } },
  }
  for _, plugin in ipairs(plugins) do
    local name, client, variables = unpack(plugin)
    local missing = vim.iter(variables):find(function(variable) return not vim.env[variable] end)
    if missing then
      io.stdout:write(("skipped: %s (%s is not set)\n"):format(name, missing))
    else
      vim.iter(variables):each(function(variable) vim.opt.runtimepath:append(vim.env[variable]) end)
      check(name, client())
    end
  end
end

local ok, why = xpcall(all, debug.traceback)
vim.fn.delete(temp, "rf")
if not ok then
  io.stderr:write(why, "\n")
end
vim.cmd.cquit({ count = ok and 0 or 1 })
