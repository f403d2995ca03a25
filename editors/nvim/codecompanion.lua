-- Neovim with CodeCompanion.nvim: merge this into its setup in your init.lua, then `:CodeCompanionChat`.

require("codecompanion").setup({
  adapters = {
    acp = {
      nuncio = function()
        return {
          name = "nuncio",
          formatted_name = "nuncio",
          type = "acp",
          roles = { llm = "assistant", user = "user" },
          opts = { vision = true },
          commands = { default = { "nuncio", "acp" } },
          defaults = { mcpServers = {}, timeout = 20000 }, -- milliseconds
          parameters = {
            protocolVersion = 1,
            -- CodeCompanion reads the file and writes the open buffer: unsaved lines would be lost.
            -- Without its file methods, nuncio works on the disk and Vim warns of changed buffers.
            clientCapabilities = { fs = { readTextFile = false, writeTextFile = false } },
            clientInfo = { name = "CodeCompanion.nvim", version = "1.0.0" },
          },
          handlers = {
            setup = function()
              return true
            end,
            -- nuncio takes its keys from the environment: there is nothing to log in to.
            auth = function()
              return true
            end,
            form_messages = function(self, messages, capabilities)
              return require("codecompanion.adapters.acp.helpers").form_messages(self, messages, capabilities)
            end,
            on_exit = function() end,
          },
        }
      end,
    },
  },
  interactions = { chat = { adapter = "nuncio" } },
})
