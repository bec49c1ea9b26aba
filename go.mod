module varve

go 1.26
