"""The agents of the checks: settings of nuncio, files in the agent's home, and expectations."""

import os
import platform

MODULES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "node_modules")
PLATFORM = "linux-" + {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def script(path):
    return ["node", os.path.join(MODULES, path)]


def program(path):
    return [os.path.join(MODULES, path)]


def codex(approval, sandbox):
    """The configuration of Codex with a model server on 127.0.0.1."""
    return """model = "mock-model"
model_provider = "mock"
approval_policy = "{approval}"
sandbox_mode = "{sandbox}"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.mock]
name = "mock"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
""".replace("{approval}", approval).replace("{sandbox}", sandbox)


CLAUDE = {
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:{port}",
    "ANTHROPIC_API_KEY": "sk-ant-mock",
    "ANTHROPIC_MODEL": "claude-sonnet-4-5",
    "ANTHROPIC_SMALL_FAST_MODEL": "claude-haiku-4-5",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
}
CODEX = {"MOCK_KEY": "mock", "OPENAI_API_KEY": "mock"}
OPENCODE = {
    "OPENCODE_CONFIG": "{home}/opencode.json",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
}
OPENCODE_CONFIG = {
    "model": "mock/mock-model",
    "small_model": "mock/mock-model",
    "autoupdate": False,
    "share": "disabled",
    "enabled_providers": ["mock"],
    "permission": {"bash": "ask"},
    "provider": {
        "mock": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "http://127.0.0.1:{port}/v1", "apiKey": "mock"},
            "models": {"mock-model": {"limit": {"context": 1000000, "output": 32000}, "tool_call": True}},
        }
    },
}
GEMINI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    # Its commands run in a pseudo-terminal, which the sandbox does not allow.
    "tools": {"shell": {"enableInteractiveShell": False}},
}
PI_MODELS = {
    "providers": {
        "mock": {
            "baseUrl": "http://127.0.0.1:{port}/v1",
            "api": "openai-completions",
            "apiKey": "mock",
            "models": [{"id": "mock-model", "contextWindow": 1000000, "maxTokens": 32000}],
        }
    }
}
NUNCIO_CONFIG = """[providers.mock]
protocol = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"
api_key_env = "MOCK_KEY"
context_window = 1000000
"""


def recording(name):
    return f"touch {{home}}/ran-{name}"


def hooks(*events):
    return {event: [{"hooks": [{"type": "command", "command": recording(event)}]}] for event in events}


CODEX_REPOSITORY = {
    ".codex/config.toml": '[mcp_servers.repository]\ncommand = "sh"\nargs = ["-c", "' + recording("codex-server") + '"]\n',
    ".codex/hooks.json": {"hooks": hooks("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop")},
}

# Files of the repository, which no agent may run, although the repository is trusted.
REPOSITORY = {
    **CODEX_REPOSITORY,
    ".gemini/settings.json": {
        "hooks": hooks("SessionStart", "BeforeAgent", "BeforeModel", "BeforeTool"),
        "mcpServers": {"repository": {"command": "sh", "args": ["-c", recording("gemini-server")]}},
        "tools": {"discoveryCommand": recording("gemini-discovery")},
    },
    ".opencode/tool/repository.js": 'import { writeFileSync } from "fs"\nwriteFileSync("{home}/ran-tool", "")\n',
    "opencode.json": {
        "mcp": {"repository": {"type": "local", "command": ["sh", "-c", recording("opencode-server")], "enabled": True}},
        "permission": "allow",
    },
    ".claude/settings.json": {
        "enableAllProjectMcpServers": True,
        "hooks": hooks("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"),
    },
    ".claude/settings.local.json": {"hooks": hooks("PostToolUse")},
    ".mcp.json": {"mcpServers": {"repository": {"command": "sh", "args": ["-c", recording("server")]}}},
}

OPENCODE_PLUGIN = {".opencode/plugin/repository.js": 'import { writeFileSync } from "fs"\nwriteFileSync("{home}/ran-plugin", "")\n'}

# By name: `kind`, `command` and `env` of the agent's settings, and `files` in its home. `{port}` is
# the port of the model server, `{home}` the home, `{nuncio}` the tested program. `arguments` are
# further arguments of its shell tool. `asks` is False for an agent that runs commands without
# asking. `denied` is the stop reason of a turn with a denied call, if it is not "end_turn".
# `writable`: directories that it needs in the sandbox. `bridge`: the agent asks the hooks before each
# call. `reports`: the agent reports the usage of each request. `prompts`: it takes a system prompt.
# `compacts`: it replaces its conversation by a summary.
# `policies`: nuncio makes the agent ask before each command and each change of a file, unless its
# own settings say otherwise.
# `resumes_next_minute`: the agent loses a session that is loaded in the minute in which it was
# created, because both processes then write to the same file. nuncio does not start the agent beside
# the files `refused`, which the agent would run.
AGENTS = {
    "gemini": {
        "kind": "acp",
        "command": script("@google/gemini-cli/bundle/gemini.js") + ["--acp"],
        "env": {
            "GEMINI_API_KEY": "mock",
            "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:{port}",
            "GEMINI_MODEL": "gemini-2.5-flash",
            "GEMINI_CLI_NO_RELAUNCH": "true",
        },
        "files": {".gemini/settings.json": GEMINI_SETTINGS},
        "resumes_next_minute": True,
    },
    "claude-agent-acp": {
        "kind": "acp",
        "command": script("@agentclientprotocol/claude-agent-acp/dist/index.js"),
        "prompts": True,
        "env": CLAUDE,
    },
    "codex-acp": {
        "kind": "acp",
        "command": script("@agentclientprotocol/codex-acp/dist/index.js"),
        "env": CODEX,
        "files": {".codex/config.toml": codex("on-request", "danger-full-access")},
        "refused": CODEX_REPOSITORY,
        "asks": False,
    },
    "codex-acp-0.16": {
        "kind": "acp",
        "command": program(f"@zed-industries/codex-acp-{PLATFORM}/bin/codex-acp"),
        "env": CODEX,
        "files": {".codex/config.toml": codex("untrusted", "danger-full-access")},
        "refused": CODEX_REPOSITORY,
        "denied": "refusal",
    },
    "opencode-acp": {
        "kind": "acp",
        "command": program(f"opencode-{PLATFORM}/bin/opencode") + ["acp"],
        "env": OPENCODE,
        "files": {"opencode.json": OPENCODE_CONFIG},
        "refused": OPENCODE_PLUGIN,
    },
    "pi": {
        "kind": "acp",
        "command": script("pi-acp/dist/index.js"),
        "env": {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"},
        "files": {
            ".pi/agent/models.json": PI_MODELS,
            ".pi/agent/settings.json": {"defaultProvider": "mock", "defaultModel": "mock-model", "enableInstallTelemetry": False},
        },
        "asks": False,
    },
    "codex": {
        "kind": "codex",
        "command": script("@openai/codex/bin/codex.js"),
        "env": CODEX,
        "files": {".codex/config.toml": codex("on-request", "workspace-write")},
        "reports": True,
        "prompts": True,
        "compacts": True,
        "policies": True,
        # A command whose shell ignores the errors of a read-only sandbox must begin outside of it.
        "arguments": {"sandbox_permissions": "require_escalated", "justification": "the check needs it"},
    },
    "claude-code": {
        "kind": "claude-code",
        "command": program(f"@anthropic-ai/claude-code-{PLATFORM}/claude"),
        "env": CLAUDE,
        "bridge": True,
        "reports": True,
        "prompts": True,
        "compacts": True,
        # Its own terminal client reports its status by hooks.
        "terminal": True,
    },
    "opencode": {
        "kind": "opencode",
        "command": program(f"opencode-{PLATFORM}/bin/opencode"),
        "env": OPENCODE,
        "reports": True,
        "prompts": True,
        "compacts": True,
        "files": {"opencode.json": OPENCODE_CONFIG},
        "refused": OPENCODE_PLUGIN,
    },
    "nuncio-acp": {
        "kind": "acp",
        "command": ["{nuncio}", "acp", "--model", "mock/mock-model"],
        "env": {"NUNCIO_HOME": "{home}/hosted", "MOCK_KEY": "mock"},
        "files": {"hosted/config.toml": NUNCIO_CONFIG},
        "writable": ["{home}/hosted"],
    },
}
