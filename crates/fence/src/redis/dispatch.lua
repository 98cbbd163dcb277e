
-- EVALSHA <sha> 1 <fence key> <token>: the token.
-- EVALSHA <sha> 2 <fence key> <data key> <token> <command> [arguments after the key]: what the command answers.
if #KEYS == 1 and #ARGV == 1 then
    return admit(KEYS[1], ARGV[1]) or ARGV[1]
end
if #KEYS == 2 and #ARGV >= 2 then
    return admit_and_do(KEYS, ARGV[1], ARGV[2], rest_of(ARGV, 3))
end
return invalid('the script takes a fence key and a token, or fence key, data key, token, command, arguments')
