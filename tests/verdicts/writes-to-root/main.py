with open("/cases/cache.txt", "w") as file:
    file.write("x")
