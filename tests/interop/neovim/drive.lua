-- Plays one scene in CodeCompanion as a user would, by its commands and keys, and prints what is shown at the end.
--
-- SETTINGS  a file with the Lua that a user pastes, from our guide
-- PLUGINS   directories for the runtime path, one a line
-- STEPS     what is done, as a JSON list: {"type": TEXT}, {"press": KEYS}, {"see": TEXT}, {"rest": true},
--           {"idle": true}, {"open": FILE}, {"resume": TITLE}
--
-- It is started as `nvim --headless --clean -u drive.lua`, because keys need the main loop.

local TIME = 30000

local function wait(what, is_so)
  if not vim.wait(TIME, is_so, 10) then
    error("never so: " .. what)
  end
end

local function press(keys)
  vim.api.nvim_feedkeys(vim.keycode(keys), "xt", false)
end

local function text(buffer)
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")
end

-- What CodeCompanion tells its user besides the chat.
local notes = {}
vim.notify = function(note, level)
  if (level or vim.log.levels.INFO) >= vim.log.levels.WARN then
    table.insert(notes, note)
  end
end

-- Debian's LuaJIT is built like Lua 5.2, where the main thread is a coroutine too. CodeCompanion knows 5.1, where whoever
-- has none has to wait, and would suspend what cannot be suspended.
local running = coroutine.running
coroutine.running = function()
  local thread, is_main = running()
  return not is_main and thread or nil
end

-- The file that is open beside the chat, and the request of the prompt.
local file, request

local steps = {}

function steps.type(chat, prompt)
  vim.api.nvim_set_current_buf(chat.bufnr)
  press("G$o" .. prompt .. "<Esc>")
  press("<CR>")
  wait("a prompt is sent", function()
    return chat.current_request ~= nil
  end)
  request = chat.acp_connection._active_prompt._request_id
end

function steps.press(chat, keys)
  vim.api.nvim_set_current_buf(chat.bufnr)
  press(keys)
end

function steps.see(chat, wanted)
  wait(wanted .. " is shown", function()
    return text(chat.bufnr):find(wanted, 1, true) ~= nil
  end)
end

-- Until one can type. After a stop CodeCompanion does not wait for the agent's answer.
function steps.idle(chat)
  wait("the chat takes text", function()
    return chat.current_request == nil and vim.bo[chat.bufnr].modifiable
  end)
end

function steps.rest(chat)
  wait("the turn has ended", function()
    return chat.acp_connection.pending_responses[request] ~= nil
  end)
  steps.idle(chat)
end

function steps.open(_, path)
  file = vim.fn.bufadd(path)
  vim.fn.bufload(file)
  vim.bo[file].buflisted = true
end

function steps.resume(chat, title)
  local select, picked = vim.ui.select, nil
  vim.ui.select = function(choices, _, pick)
    for at, choice in ipairs(choices) do
      if choice:find(title, 1, true) then
        picked = at
        return pick(choice, at)
      end
    end
  end
  local command = require("codecompanion.config").interactions.chat.slash_commands.resume
  local commands = require("codecompanion.interactions.chat.slash_commands").new()
  commands:execute({ config = command, label = "/resume", context = {} }, chat)
  vim.ui.select = select
  assert(picked, "no session of that title is offered")
end

local function play()
  for dir in vim.env.PLUGINS:gmatch("[^\n]+") do
    vim.opt.runtimepath:prepend(dir)
  end
  vim.cmd("runtime! plugin/plenary.vim plugin/codecompanion.lua")
  dofile(vim.env.SETTINGS)
  vim.cmd("CodeCompanionChat")
  local chat = assert(require("codecompanion").last_chat(), "there is no chat")
  -- It starts the agent when the chat is opened, and a second one for those who type faster than that takes.
  wait("there is a session", function()
    return chat.acp_connection and chat.acp_connection:is_connected()
  end)
  for _, step in ipairs(vim.json.decode(vim.env.STEPS)) do
    local name, argument = next(step)
    steps[name](chat, argument)
  end
  local seen = { chat = text(chat.bufnr), title = chat.title, notes = notes, file = file and text(file) }
  io.stdout:write(vim.json.encode(seen), "\n")
  chat:close()
end

vim.api.nvim_create_autocmd("VimEnter", {
  callback = vim.schedule_wrap(function()
    local is_good, why = xpcall(play, debug.traceback)
    if is_good then
      return vim.cmd("qall!")
    end
    io.stderr:write(why, "\n", table.concat(notes, "\n"), "\n")
    vim.cmd("cquit 1")
  end),
})
