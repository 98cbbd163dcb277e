#!lua name=kunci
-- Guards keys by fencing tokens. Written by `kunci fence redis print`; loaded by `kunci fence redis install`, or by
-- `kunci fence redis print | redis-cli -x FUNCTION LOAD REPLACE`.

