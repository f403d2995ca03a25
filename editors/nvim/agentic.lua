-- Neovim 0.11+ with agentic.nvim: merge this into its setup in your init.lua, then
-- `:lua require("agentic").toggle()`.

require("agentic").setup({
  provider = "nuncio",
  acp_providers = {
    nuncio = {
      name = "nuncio",
      command = "nuncio",
      args = { "acp" },
      -- agentic.nvim passes only PATH by itself; nuncio and its commands need HOME and your key.
      env = vim.fn.environ(),
    },
  },
})
