-- The fence: a resource's fence key keeps the largest token that it has seen, and nothing with a smaller one changes what
-- it guards. Everything below runs as one atomic step of the server.

-- A token, or nil and what is wrong. Decimal digits alone: no sign, no leading zero, no exponent, no white space. Up to
-- 2^53 - 1 a Lua number holds every integer exactly, so that the comparison is exact.
local function token_of(text)
    if type(text) ~= 'string' or #text > 16 or not string.find(text, '^[1-9][0-9]*$') then
        return nil
    end
    local number = tonumber(text)
    if number > 9007199254740991 then
        return nil
    end
    return number
end

-- What comes from outside, fit for a line of an error.
local function shown(text)
    local line = string.gsub(text, '%c', '?')
    if #line > 256 then
        line = string.sub(line, 1, 256) .. '...'
    end
    return line
end

-- The resource that a fence key stands for: what is between the braces, or the whole key.
local function resource_of(fence_key)
    return shown(string.match(fence_key, '^kunci:fence:{(.*)}$') or fence_key)
end

local function invalid(text)
    return { err = 'KUNCI_INVALID ' .. text }
end

-- The token that a fence key keeps as text, nil before the first; and an error where it can't be read. A key that holds
-- something else refuses everything: guessing would let a late writer in.
local function kept_by(fence_key)
    local kept = redis.pcall('GET', fence_key)
    if kept == false then
        return nil, nil
    end
    -- Not allowed to read it, say: the server's own words are the better ones.
    if type(kept) == 'table' and kept.err and not string.find(kept.err, '^WRONGTYPE') then
        return nil, kept
    end
    if type(kept) ~= 'string' or not token_of(kept) then
        local text = 'KUNCI_BROKEN resource=' .. resource_of(fence_key) .. ' the fence key ' .. shown(fence_key)
        return nil, { err = text .. ' holds no token: expected 1 to 9007199254740991' }
    end
    return kept, nil
end

-- Compares and keeps; an error where the token isn't admitted. The fence key never expires, whatever was done to it.
local function admit(fence_key, found)
    local number = token_of(found)
    if not number then
        return invalid('found token ' .. shown(tostring(found)) .. ': expected 1 to 9007199254740991 in plain digits')
    end
    local kept, broken = kept_by(fence_key)
    if broken then
        return broken
    end
    if kept and number < tonumber(kept) then
        local text = 'KUNCI_REJECTED resource=' .. resource_of(fence_key)
        return { err = text .. ' found=' .. found .. ' kept=' .. kept }
    end
    if kept == found then
        redis.call('PERSIST', fence_key)
    else
        redis.call('SET', fence_key, found)
    end
    return nil
end

-- Admits, and only then does a command to the data key. The token is kept first: should the command fail, nothing was
-- written, and older writers stay out.
local function admit_and_do(keys, found, command, arguments)
    if keys[1] == keys[2] then
        return invalid('the fence key is the data key: expected two keys of the same slot')
    end
    local refused = admit(keys[1], found)
    if refused then
        return refused
    end
    return redis.call(command, keys[2], unpack(arguments))
end

local function rest_of(args, first)
    local rest = {}
    for place = first, #args do
        rest[#rest + 1] = args[place]
    end
    return rest
end
