-- epplan.lua: asks the planner on its Unix socket what to note on a job that is
-- being submitted. Loaded by one line in the site's own job_submit.lua:
--   pcall(function() EPPLAN = EPPLAN or dofile("@DIR@/epplan.lua"); EPPLAN.submit(job_desc, submit_uid) end) -- epplan
-- slurmctld submits nothing else meanwhile, so the bounds are small: 15 ms in
-- all, and after a failure nobody is asked for 5 s. No answer means no plan:
-- the job goes on as it is. Written by epplan install slurm, which replaces it.
local M = {}

local SOCKET    = "@SOCKET@"
local PROGRAM   = "@PROGRAM@" -- asks where lua-socket is missing; "": nobody does
local DEADLINE  = 0.015 -- seconds for reading the job, connect, send and reply together
local BREAKER   = 5     -- seconds without a try after a failure
local MAXSCRIPT = 65536
local MAXTEXT   = 8192
local MAXREPLY  = 16384
local MAXHEX    = 32768 -- of an argument of PROGRAM
local MAXSLACK  = 7 * 86400 -- seconds that a job is put off at most
local NO_VAL    = slurm.NO_VAL or 4294967294
local skip_until = 0

local have_socket, socket = pcall(require, "socket")
local have_unix, unix = pcall(require, "socket.unix")

local HEX = {}
for i = 0, 255 do HEX[string.char(i)] = string.format("%02x", i) end

local function hex(s)
  return (s:gsub(".", HEX))
end

local function unhex(s)
  if #s % 2 ~= 0 or s:find("[^0-9a-f]") then return nil end
  return (s:gsub("..", function(h) return string.char(tonumber(h, 16)) end))
end

-- clock gives seconds; whole ones without lua-socket.
local function clock()
  if have_socket then return socket.gettime() end
  return os.time()
end

local TEXTS = { "name", "partition", "account", "qos", "comment", "admin_comment", "features", "prefer", "tres_per_node",
  "tres_per_job", "tres_per_task", "tres_per_socket", "tres_freq", "array_inx", "work_dir" }
local NUMBERS = { time_limit = "time_limit_min", min_nodes = "min_nodes", num_tasks = "num_tasks", cpus_per_task = "cpus_per_task", begin_time = "begin_unix_s" }

-- get reads a field that this version of Slurm may not have.
local function get(jd, key)
  local ok, v = pcall(function() return jd[key] end)
  if ok then return v end
end

-- encode cuts each text at most_text bytes, and the script at most_script. Whether an array's list is too long for
-- a nice (over 1,000 bytes) is to be seen all the same.
local function encode(jd, uid, most_text, most_script)
  local script = get(jd, "script")
  local batch = type(script) == "string" and script ~= ""
  local out = { '"v":1', string.format('"uid":%.0f', uid), '"kind":"' .. (batch and "batch" or "interactive") .. '"' }
  for _, key in ipairs(TEXTS) do
    local v = get(jd, key)
    local most = key == "array_inx" and math.max(most_text, 1001) or most_text
    if type(v) == "string" and v ~= "" then out[#out + 1] = '"' .. key .. '_hex":"' .. hex(v:sub(1, most)) .. '"' end
  end
  for key, name in pairs(NUMBERS) do
    local v = get(jd, key)
    if type(v) == "number" and v > 0 and v < 4294967296 and v ~= NO_VAL and v ~= 65534 then out[#out + 1] = string.format('"%s":%.0f', name, v) end
  end
  local tied = false
  if get(jd, "priority") == 0 then out[#out + 1] = '"held":true' end
  for _, key in ipairs({ "dependency", "reservation" }) do
    local v = get(jd, key)
    if type(v) == "string" and v ~= "" then tied = true end
  end
  local due = get(jd, "deadline")
  if tied or type(due) == "number" and due > 0 and due ~= NO_VAL then out[#out + 1] = '"tied":true' end
  local nice = get(jd, "nice")
  if type(nice) == "number" and nice ~= NO_VAL then out[#out + 1] = '"own_nice":true' end
  if batch and most_script > 0 then out[#out + 1] = '"script_hex":"' .. hex(script:sub(1, most_script)) .. '"' end
  return "{" .. table.concat(out, ",") .. "}"
end

-- ask sends one HTTP/1.0 request and gives the body of a 200 reply.
local function ask(jd, uid, stop)
  local body = encode(jd, uid, MAXTEXT, MAXSCRIPT)
  local conn = (type(unix) == "table" and (unix.stream or unix.tcp) or unix)()
  local function fail(what, err)
    pcall(function() conn:close() end)
    return nil, what .. ": " .. tostring(err)
  end
  local function bound()
    local left = stop - socket.gettime()
    conn:settimeout(left > 0.001 and left or 0.001, "t")
    return left > 0
  end
  if not bound() then return fail("connect", "timeout") end
  local ok, err = conn:connect(SOCKET)
  if not ok then return fail("connect", err) end
  if not bound() then return fail("send", "timeout") end
  ok, err = conn:send("POST /v1/submit HTTP/1.0\r\nHost: epplan\r\nContent-Type: application/json\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body)
  if not ok then return fail("send", err) end
  local reply = ""
  repeat
    if not bound() then return fail("receive", "timeout") end
    local part, why, rest = conn:receive(1024)
    reply = reply .. (part or rest or "")
    if why and why ~= "closed" then return fail("receive", why) end
    if #reply > MAXREPLY then return fail("receive", "reply too long") end
  until why == "closed"
  conn:close()
  if not reply:match("^HTTP/1%.[01] 200 ") then return fail("reply", reply:sub(1, 40):gsub("%c.*", "")) end
  return reply:match("\r\n\r\n(.*)$")
end

-- ask_program has a program ask, which ends within 100 ms by itself. Its command
-- line is fixed but for one argument of the digits 0 to 9 and a to f, which says
-- the same without the script.
local function ask_program(jd, uid)
  local data
  for _, most in ipairs({ 2048, 512, 256 }) do
    data = hex(encode(jd, uid, most, 0))
    if #data <= MAXHEX then break end
  end
  if #data > MAXHEX or data:find("[^0-9a-f]") then return nil, "the job can't be told in an argument" end
  local pipe = io.popen("exec " .. PROGRAM .. " submit --socket " .. SOCKET .. " --hex " .. data .. " 2>/dev/null", "r")
  if not pipe then return nil, PROGRAM .. " can't be started" end
  local reply = pipe:read(MAXREPLY)
  pipe:close()
  if not reply or not reply:match("^{.*}%s*$") then return nil, PROGRAM .. " has no answer" end
  return reply
end

-- is_plain tells whether a comment of others is surely words for people. The rule and its reasons are those of
-- IsPlain in admincomment.go; a test holds the two together.
function M.is_plain(text)
  if text:find("[^A-Za-z0-9 .,;%-_()=!?#]") or text:find("^ ") or text:find(" $") then return false end
  local first = true
  for word in text:gmatch("[^ ,;]+") do
    local _, equals = word:gsub("=", "")
    if equals > 1 or equals == 1 and not word:find("^%(.*%)$") then return false end
    if first and word ~= "(" and not word:find("^%(?[A-Za-z]") then return false end
    first = false
    for run in word:gmatch("[A-Za-z0-9]+") do
      if #run > 20 or #run > 4 and (run:find("[a-z][A-Z]") or run:find("[A-Za-z]") and run:find("[0-9]")) then return false end
    end
  end
  return true
end

local function plan(jd, uid)
  local now = clock()
  if now < skip_until and skip_until - now <= BREAKER + 1 then return end -- quiet while the breaker is open
  local body, err
  if have_socket and have_unix then
    body, err = ask(jd, uid, now + DEADLINE)
  elseif PROGRAM ~= "" then
    body, err = ask_program(jd, uid)
  else
    err = "lua-socket is missing"
  end
  if not body then
    skip_until = clock() + BREAKER + (have_socket and 0 or 1)
    slurm.log_info("epplan: no plan (%s), job goes on as it is", tostring(err))
    return
  end
  local admin = unhex(body:match('"admin_comment_hex"%s*:%s*"(%x*)"') or "")
  local before = get(jd, "admin_comment")
  if admin and admin ~= "" and #admin <= 1024 then
    -- never drop what others wrote there
    if type(before) ~= "string" then before = "" end
    local ours = admin:sub(#before + 1) -- one line: another would look like a field to whoever reads Slurm's text
    if admin:sub(1, #before) == before and M.is_plain(before) and not ours:find("%c") then
      jd.admin_comment = admin
      -- behind those that are in order already: what was put there is taken back by the word in the comment
      local nice = tonumber(body:match('"nice"%s*:%s*(%d+)') or "")
      local own = get(jd, "nice")
      if nice and nice >= 1 and nice <= 1048576 and slurm.NICE_OFFSET and (own == nil or own == NO_VAL) then jd.nice = slurm.NICE_OFFSET + nice end
      -- when energy costs less, for a job that can wait: taken back likewise, and at any time by its owner
      local begin = tonumber(body:match('"begin_unix_s"%s*:%s*(%d+)') or "")
      own = get(jd, "begin_time")
      if begin and begin > os.time() and begin < os.time() + MAXSLACK and (own == nil or own == 0 or own == NO_VAL) then jd.begin_time = begin end
    end
  end
  local message = unhex(body:match('"message_hex"%s*:%s*"(%x*)"') or "")
  if message and message ~= "" then slurm.log_user("%s", (message:sub(1, 300):gsub("%c", " "))) end
end

-- submit never raises and never refuses a job.
function M.submit(jd, uid)
  local ok, err = pcall(plan, jd, uid)
  if not ok then pcall(slurm.log_info, "epplan: hook error, job goes on as it is: %s", tostring(err)) end
end

return M
