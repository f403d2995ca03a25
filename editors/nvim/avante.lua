-- Neovim with avante.nvim: merge this into its setup in your init.lua, then `:AvanteAsk`.

require("avante").setup({
  provider = "nuncio",
  -- Avante answers every permission request with yes unless this is false.
  behaviour = { auto_approve_tool_permissions = false },
  acp_providers = {
    nuncio = {
      command = "nuncio",
      args = { "acp" },
      -- Avante passes only PATH by itself; nuncio and its commands need HOME and your key.
      env = vim.fn.environ(),
    },
  },
})
