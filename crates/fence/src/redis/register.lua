
-- FCALL kunci_admit 1 <fence key> <token>: the token.
local function kunci_admit(keys, args)
    if #keys ~= 1 or #args ~= 1 then
        return invalid('kunci_admit takes 1 key and 1 argument: the fence key, the token')
    end
    return admit(keys[1], args[1]) or args[1]
end

-- FCALL kunci_set 2 <fence key> <data key> <token> <value> [options of SET]: what SET answers.
local function kunci_set(keys, args)
    if #keys ~= 2 or #args < 2 then
        return invalid('kunci_set takes 2 keys and 2 arguments or more: fence key, data key, token, value, options of SET')
    end
    return admit_and_do(keys, args[1], 'SET', rest_of(args, 2))
end

-- FCALL kunci_do 2 <fence key> <data key> <token> <command> [arguments after the key]: what the command answers. For
-- commands that have one key, as their first argument.
local function kunci_do(keys, args)
    if #keys ~= 2 or #args < 2 then
        return invalid('kunci_do takes 2 keys and 2 arguments or more: fence key, data key, token, command, arguments')
    end
    return admit_and_do(keys, args[1], args[2], rest_of(args, 3))
end

-- FCALL_RO kunci_kept 1 <fence key>: the token that is kept, or nil before the first.
local function kunci_kept(keys, args)
    if #keys ~= 1 or #args ~= 0 then
        return invalid('kunci_kept takes 1 key and no argument: the fence key')
    end
    local kept, broken = kept_by(keys[1])
    return broken or kept or false
end

redis.register_function('kunci_admit', kunci_admit)
redis.register_function('kunci_set', kunci_set)
redis.register_function('kunci_do', kunci_do)
redis.register_function { function_name = 'kunci_kept', callback = kunci_kept, flags = { 'no-writes' } }
