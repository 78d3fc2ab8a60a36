while :; do
    sleep 3600 &
done
